// SPDX-License-Identifier: Apache-2.0
// palimpsest traj: trajectories and the weights of their samples.

#include <cmath>
#include <complex>

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/cfl.hpp"

namespace palimpsest::cli {
namespace {

struct TrajCommand {
  std::string output, kind = "radial", convention = "plain", weights, density = "pipe", input;
  index_t spokes = 33, samples = 128, tiny = 7, planes = 8, acceleration = 1, interleaves = 16;
  index_t matrix = 64, lines = 64;
  std::optional<index_t> echo_train;
  double oversampling = 2, field_of_view = 240, g_max = 40, s_max = 150, time_step = 4;
  double undersampling = 1, ramp = 0;
  bool full = false, half_shift = false, rotated = false;
  CommonOptions common;
};

Tensor trajectory_of(const TrajCommand& o) {
  const RadialOptions radial = {.spokes = o.spokes,
                                .samples = o.samples,
                                .oversampling = o.oversampling,
                                .full = o.full,
                                .golden = o.kind == "golden" ? 1
                                          : o.kind == "tiny" ? o.tiny
                                                             : 0,
                                .half_shift = o.half_shift,
                                .convention = o.convention == "bart" ? TrajectoryConvention::bart
                                                                     : TrajectoryConvention::plain};
  if (o.kind == "stack") {
    const Tensor stack = stack_of_stars(
        radial, {.planes = o.planes, .acceleration = o.acceleration, .rotated = o.rotated});
    return stack.reshape({stack.shape(0) * stack.shape(1), stack.shape(2), 3});
  }
  if (o.kind == "koosh") return koosh_ball(radial);
  if (o.kind == "spiral") {
    return spiral_trajectory({.interleaves = o.interleaves,
                              .matrix = o.matrix,
                              .field_of_view_mm = o.field_of_view,
                              .g_max = o.g_max,
                              .s_max = o.s_max,
                              .outer_undersampling = o.undersampling,
                              .time_step_us = o.time_step});
  }
  if (o.kind == "epi") {
    return epi_trajectory({.lines = o.lines,
                           .echo_train = o.echo_train.value_or(o.lines),
                           .samples = o.samples,
                           .ramp = o.ramp});
  }
  return radial_trajectory(radial);
}

// Form of BART: complex (readouts, samples, 3), the third coordinate 0 in 2-D.
Tensor as_bart(const Tensor& trajectory) {
  const index_t d = trajectory.shape(2);
  Tensor result = Tensor::zeros({trajectory.shape(0), trajectory.shape(1), 3}, DType::complex64);
  auto* to = result.mutable_data<std::complex<float>>();
  const float* from = trajectory.data<float>();
  for (index_t i = 0, end = trajectory.numel(); i < end; ++i) to[i / d * 3 + i % d] = from[i];
  return result;
}

Tensor weights_of(const TrajCommand& options, const Tensor& trajectory) {
  if (options.density == "pipe") return density_compensation(trajectory, DensityMethod::pipe);
  try {
    return density_compensation(trajectory, DensityMethod::analytic);
  } catch (const ValueError& error) {
    const std::string text = error.what();
    throw UsageError("[--density] " + text.substr(text.find(' ') + 1));
  }
}

void write_array(Outputs& outputs, const std::string& path, const Tensor& array,
                 const Tensor& for_bart) {
  const bool is_cfl = path.ends_with(".cfl") || path.ends_with(".hdr");
  outputs.write(path, [&](const std::string& to) {
    is_cfl ? write_cfl(to, for_bart) : write_npy(to, array);
  });
}

void traj(const TrajCommand& options) {
  Run run("traj", options.common);
  if (options.tiny < 1) {
    throw UsageError(fmt::format("[--tiny] got {}, expected at least 1", options.tiny));
  }
  Outputs& outputs = run.outputs();
  const std::vector<std::string> endings = {".npy", ".cfl", ".hdr"};
  outputs.reads(options.input);
  outputs.announce(options.output, endings);
  outputs.announce(options.weights, endings);
  const Tensor trajectory =
      (options.input.empty() ? trajectory_of(options) : read_trajectory(options.input))
          .contiguous();
  run.facts().set("kind", options.input.empty() ? options.kind : options.input);
  run.facts().set("readouts", trajectory.shape(0)).set("samples", trajectory.shape(1));
  const float* k = trajectory.data<float>();
  double largest = 0;
  for (index_t i = 0, end = trajectory.numel(); i < end; ++i)
    largest = std::max(largest, std::abs(double{k[i]}));
  run.facts().set("largest_coordinate", largest);
  // The trajectory, BART's form of it, and on a grid of twice the size the weights.
  const index_t readout_points = trajectory.shape(0) * trajectory.shape(1);
  const auto grid = static_cast<index_t>(std::pow(4 * largest + 16, trajectory.shape(2)));
  const index_t gridding = options.weights.empty() ? 0 : 16 * grid + 64 * readout_points;
  if (run.announce(trajectory.nbytes() + 24 * readout_points + gridding)) return run.finish("");
  write_array(outputs, options.output, trajectory, as_bart(trajectory));
  if (!options.weights.empty()) {
    const Tensor weights = weights_of(options, trajectory);
    // BART's are (1, samples, readouts).
    write_array(outputs, options.weights, weights, weights.unsqueeze(-1));
  }
  run.finish(fmt::format("{} readouts of {} samples in {}-D, coordinates up to {:g}\n",
                         trajectory.shape(0), trajectory.shape(1), trajectory.shape(2), largest));
}

void add_rules(Command& command) {
  const std::vector<std::string> radial = {"--spokes", "--oversampling", "--full", "--half-shift",
                                           "--convention"};
  const std::vector<std::string> stack = {"--planes", "--acceleration", "--rotated"};
  const std::vector<std::string> spiral = {
      "--interleaves", "--matrix", "--fov", "--g-max", "--s-max", "--undersampling", "--time-step"};
  const std::vector<std::string> epi = {"--lines", "--echo-train", "--ramp"};
  const auto refuse = [&](const char* kind, std::initializer_list<std::vector<std::string>> lists) {
    for (const auto& list : lists) command.excludes("--kind", list, kind);
  };
  // Golden angles turn by the same angle on and on, and a koosh ball has all directions.
  for (const char* kind : {"golden", "tiny", "koosh"}) command.excludes("--kind", {"--full"}, kind);
  // BART's spokes are half a step off by themselves.
  command.excludes("--convention", {"--half-shift"}, "bart");
  for (const auto& list : {radial, stack, spiral, epi}) command.excludes("--input", list);
  command.excludes("--input", {"--kind", "--samples", "--tiny"});
  for (const char* kind : {"radial", "golden", "koosh"}) {
    refuse(kind, {stack, spiral, epi, {"--tiny"}});
  }
  refuse("tiny", {stack, spiral, epi});
  refuse("stack", {spiral, epi, {"--tiny"}});
  refuse("spiral", {radial, stack, epi, {"--tiny", "--samples"}});
  refuse("epi", {radial, stack, spiral, {"--tiny"}});
}

}  // namespace

void add_traj(CommandLine& line) {
  const auto o = std::make_shared<TrajCommand>();
  Command command =
      line.add("traj", "Make a trajectory through k-space, and weights of its samples");
  command
      .argument(
          "OUTPUT", o->output,
          "Output: (readouts, samples, 2 or 3), x first, in cycles per field of view: .npy or "
          ".cfl")
      .choice("--kind", {"radial", "golden", "tiny", "stack", "koosh", "spiral", "epi"}, o->kind,
              "Trajectory")
      .option("--input", "FILE", o->input,
              "Existing trajectory, in place of a new one: for --weights")
      .option("--samples", "N", o->samples, "Samples of a readout, 1 or more")
      .option("--spokes", "N", o->spokes, "Readouts, 1 or more")
      .option("--oversampling", "X", o->oversampling, "Samples for each cycle per field of view")
      .flag("--full", o->full, "Spokes spread over 360 degrees, not 180")
      .flag("--half-shift", o->half_shift, "Samples moved by half a step: none lies in the middle")
      .choice("--convention", {"plain", "bart"}, o->convention, "Start and direction of angles")
      .option("--tiny", "N", o->tiny, "tiny: number of the golden angle; 7 is 23.6281 degrees")
      .option("--planes", "N", o->planes, "stack: number of planes along z")
      .option("--acceleration", "N", o->acceleration, "stack: measure every N-th plane")
      .flag("--rotated", o->rotated, "stack: turn the spokes from plane to plane")
      .option("--interleaves", "N", o->interleaves, "spiral: number of readouts")
      .option("--matrix", "N", o->matrix, "spiral: matrix size of the image, points per axis")
      .option("--fov", "MM", o->field_of_view, "spiral: field of view in mm")
      .option("--g-max", "X", o->g_max, "spiral: largest gradient in mT/m")
      .option("--s-max", "X", o->s_max, "spiral: largest slew rate in T/m/s")
      .option("--undersampling", "X", o->undersampling,
              "spiral: distance of turns at the end, as a multiple of the Nyquist distance")
      .option("--time-step", "US", o->time_step, "spiral: time between samples in us")
      .option("--lines", "N", o->lines, "epi: number of lines in all shots")
      .option("--echo-train", "N", o->echo_train, "epi: number of lines per shot; default: all")
      .option("--ramp", "X", o->ramp,
              "epi: fraction of a line, at each end, that is sampled on the ramp")
      .option("--weights", "FILE", o->weights,
              "Output: area of k-space for each sample, (readouts, samples)")
      .choice("--density", {"pipe", "analytic"}, o->density,
              "method for the weights: iteration, or the formula for radial spokes")
      .needs("--density", {"--weights"})
      .action([o] { traj(*o); });
  add_rules(command);
  add_common(command, o->common);
}

}  // namespace palimpsest::cli
