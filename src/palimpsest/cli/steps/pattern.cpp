// SPDX-License-Identifier: Apache-2.0
// palimpsest pattern: which phase encodes to measure.

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/patterns.hpp"

namespace palimpsest::cli {
namespace {

struct PatternCommand {
  std::string output, kind = "poisson", size = "128,128", step = "2,2", axis = "y";
  double acceleration = 4, spread = 1, fraction = 0.75;
  index_t center = 24, seed = 0, shift = 0, lines = 8, frames = 1;
  bool ellipse = false, evenly = false;
  CommonOptions common;
};

Tensor chosen_pattern(const PatternCommand& o) {
  const std::vector<index_t> n = parse_numbers("--size", o.size, {2, 3});
  const auto seed = static_cast<std::uint64_t>(o.seed);
  if (o.kind == "caipi") {
    const std::vector<index_t> step = parse_numbers("--step", o.step, {2});
    return caipi_pattern(n[0], n[1], step[0], step[1], o.shift, o.center);
  }
  if (o.kind == "partial") {
    return partial_pattern(Extents(n.begin(), n.end()), o.fraction, o.axis == "y" ? 0 : 1);
  }
  if (o.kind == "lines") {
    return line_patterns(
        n[0], {.lines = o.lines, .frames = o.frames, .golden = !o.evenly, .center = o.center});
  }
  const PatternOptions how = {.kind = parse_pattern(o.kind),
                              .acceleration = o.acceleration,
                              .center = o.center,
                              .seed = seed,
                              .spread = o.spread,
                              .ellipse = o.ellipse};
  if (n.size() == 3) return volume_pattern({n[0], n[1], n[2]}, how);
  const Tensor mask = sampling_pattern(n[0], n[1], how);
  return o.frames > 1 ? interleaved(mask, o.frames, o.center) : mask;
}

void pattern(const PatternCommand& options) {
  constexpr index_t kMostFrames = 1 << 16;
  Run run("pattern", options.common);
  announce_image(run.outputs(), options.output);
  expect_between("--frames", options.frames, 1, kMostFrames);
  const std::vector<index_t> n = parse_numbers("--size", options.size, {2, 3});
  if (n.size() == 3 && options.kind != "random") {
    throw UsageError(fmt::format("[--kind] {} has two axes, got --size {}. Try random",
                                 options.kind, options.size));
  }
  if (n.size() == 3 && options.frames > 1) {
    throw UsageError("[--frames] has no effect on a pattern of three axes. Try two extents");
  }
  index_t points = 1;
  for (const index_t extent : n) points *= extent;
  run.facts().set("kind", options.kind).set("points", points).set("seed", options.seed);
  // The mask of each frame, its sum, and the same as numbers for the file.
  if (run.announce(points * (1 + 5 * std::max<index_t>(options.frames, 1)))) return run.finish("");
  const Tensor mask = chosen_pattern(options);
  const index_t samples = count_samples(mask);
  const double acceleration = static_cast<double>(mask.numel()) / static_cast<double>(samples);
  run.facts().set("samples", samples).set("acceleration", acceleration);
  Image image;
  image.data = ends_in(options.output, ".npy") ? mask : mask.to(DType::float32);
  // Phase encodes are y and z. BART's masks have the readout x as well, of one point.
  const Dims axes = options.kind == "lines" ? Dims("Ny")
                    : n.size() == 3         ? Dims("Nz Ny Nx")
                                            : Dims("Ny Nz");
  image.names = mask.rank() > axes.size() ? Dims("T") + axes : axes;
  if (!options.output.ends_with(".cfl") && !options.output.ends_with(".hdr")) {
    image.names = usual_names(mask.rank());
  } else if (n.size() == 2) {
    image.data = image.data.unsqueeze(-1);
    image.names += Dims("Nx");
  }
  write_image(run.outputs(), options.output, image);
  run.finish(fmt::format("{} of {} points, {:.2f}-fold\n", samples, mask.numel(), acceleration));
}

}  // namespace

void add_pattern(CommandLine& line) {
  const auto o = std::make_shared<PatternCommand>();
  Command command = line.add("pattern", "Make a sampling pattern of phase encodes");
  command
      .argument("OUTPUT", o->output,
                "Output: bool ([frame,] y, z) or (z, y, x); .npy, .cfl, .png, ..")
      .choice("--kind", {"poisson", "random", "uniform", "full", "caipi", "partial", "lines"},
              o->kind, "Pattern")
      .option("--size", "NY,NZ", o->size, "Extents, 1 or more; three for random in 3-D")
      .option("--acceleration", "X", o->acceleration, "Grid points per sample, 1 or more")
      .option("--center", "N", o->center, "Extent of the fully sampled centre in grid points")
      .option("--spread", "X", o->spread,
              "Growth of the distance between samples with that from the centre; 0: evenly dense")
      .flag("--ellipse", o->ellipse, "Leaves out the corners")
      .option("--step", "DY,DZ", o->step, "caipi: measure every DY-th row, in it every DZ-th point")
      .option("--shift", "N", o->shift, "caipi: shift from row to row in points")
      .option("--fraction", "X", o->fraction, "partial: measured fraction, above 0.5 up to 1")
      .choice("--axis", {"y", "z"}, o->axis, "partial: axis that is cut")
      .option("--lines", "N", o->lines, "lines: number of lines per frame")
      .option("--frames", "N", o->frames,
              "Frames of a series; the points are distributed among them")
      .flag("--evenly", o->evenly,
            "lines: fill the gaps of earlier frames, in place of golden-ratio steps")
      .option("--seed", "N", o->seed, "Seed of poisson and random")
      .action([o] { pattern(*o); });
  for (const char* kind : {"poisson", "random", "uniform", "full"}) {
    command.excludes("--kind", {"--step", "--shift", "--fraction", "--axis", "--lines", "--evenly"},
                     kind);
  }
  command.excludes("--kind",
                   {"--acceleration", "--spread", "--ellipse", "--seed", "--fraction", "--axis",
                    "--lines", "--frames", "--evenly"},
                   "caipi");
  command.excludes("--kind",
                   {"--acceleration", "--center", "--spread", "--ellipse", "--seed", "--step",
                    "--shift", "--lines", "--frames", "--evenly"},
                   "partial");
  command.excludes("--kind",
                   {"--acceleration", "--spread", "--ellipse", "--seed", "--step", "--shift",
                    "--fraction", "--axis"},
                   "lines");
  command.excludes("--kind", {"--spread", "--seed"}, "uniform");
  command.excludes("--kind", {"--acceleration", "--center", "--spread", "--seed"}, "full");
  command.needs("--evenly", {"--frames"});
  add_common(command, o->common);
}

}  // namespace palimpsest::cli
