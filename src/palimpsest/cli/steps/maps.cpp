// SPDX-License-Identifier: Apache-2.0
// palimpsest maps: coil sensitivities out of k-space.

#include <filesystem>

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/calibration.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "palimpsest/io/scratch_array.hpp"

namespace palimpsest::cli {
namespace {

struct MapsOptions {
  std::string input, output, method = "espirit", threshold = "0.001", crop = "0.8", eigenvalues;
  index_t calibration = 24, kernel = 6, sets = 1, block = 7;
  std::optional<index_t> rank;
  std::optional<double> percent, noise_variance;
  bool soft = false, intensity = false, keep_phase = false;
  CommonOptions common;
};

// A number, or `auto`.
std::optional<double> number_or_auto(const std::string& option, const std::string& text) {
  if (text == "auto") return std::nullopt;
  try {
    std::size_t used = 0;
    const double value = std::stod(text, &used);
    if (used == text.size()) return value;
  } catch (const std::logic_error&) {
    // Said below.
  }
  throw UsageError(fmt::format("[{}] got '{}', expected a number or auto", option, text));
}

EspiritOptions espirit_options(const MapsOptions& options) {
  const bool has_auto =
      options.crop == "auto" || (options.threshold == "auto" && !options.rank && !options.percent);
  if (options.noise_variance && !has_auto) {
    throw UsageError(
        "[--noise-variance] has no effect without --threshold auto or --crop auto. Try to add one");
  }
  if (options.noise_variance && !(*options.noise_variance > 0)) {
    throw UsageError(fmt::format("[--noise-variance] got {}, expected a number above 0",
                                 *options.noise_variance));
  }
  return {.calibration = options.calibration,
          .kernel = options.kernel,
          .threshold = number_or_auto("--threshold", options.threshold),
          .rank = options.rank,
          .percent = options.percent,
          .crop = number_or_auto("--crop", options.crop),
          .sets = options.sets,
          .soft = options.soft,
          .intensity = options.intensity,
          .rotate_phase = !options.keep_phase,
          .sigma2 = options.noise_variance,
          .keep_eigenvalues = !options.eigenvalues.empty()};
}

// ESPIRiT, its calibration area already found: with it the plan is exact.
struct Espirit {
  EspiritOptions how;
  index_t planned_bytes = 0;
  // The maps go into a file of this folder, as --memory has no room for them; else they are held.
  std::optional<std::string> scratch = {};
};

Espirit plan_maps(const MapsOptions& options, const KspaceFile& file,
                  std::optional<index_t> limit) {
  Espirit result{.how = espirit_options(options)};
  const Extents& shape = file.kspace.shape();
  plan_espirit(shape, result.how);  // refuses wrong options before the data are searched
  result.how.area = calibration_area_of(file.kspace, options.calibration);
  const index_t finding = file.kspace.numel() / shape[0];  // which points were measured
  const auto bytes = [&](bool into_array) {
    return file.held_bytes +
           std::max(finding, plan_espirit(shape, result.how, into_array).peak_bytes());
  };
  result.planned_bytes = bytes(/*into_array=*/false);
  if (limit && result.planned_bytes > *limit) {
    result.planned_bytes = bytes(/*into_array=*/true);
    const std::string folder = std::filesystem::path(options.output).parent_path().string();
    result.scratch = folder.empty() ? "." : folder;
  }
  return result;
}

MapsResult run_espirit(const Espirit& plan, const MapsOptions& options, const Tensor& kspace) {
  if (!plan.scratch) return espirit(kspace, plan.how);
  Extents shape = kspace.shape();
  shape.insert(0, options.sets);
  ScratchArray array(*plan.scratch, shape, DType::complex64);
  MapsResult result = espirit(kspace, array, plan.how);
  result.maps = array.map();
  return result;
}

index_t planned_bytes(const MapsOptions& options, const KspaceFile& file) {
  if (options.method == "walsh") {
    const index_t images = file.kspace.nbytes();
    return file.held_bytes +
           std::max(plan_coil_images(file.kspace.shape()),
                    images + plan_walsh(file.kspace.shape(),
                                        {.block = options.block, .sets = options.sets}));
  }
  const CalibrationArea area = calibration_area_of(file.kspace, options.calibration);
  return file.held_bytes + plan_direct_maps(file.kspace.shape(), area);
}

Tensor without_sets(const Tensor& maps) { return maps.shape(0) == 1 ? maps.squeeze(0) : maps; }

Dims map_names(std::size_t rank, bool has_sets) {
  const Dims plane = rank == 4 ? Dims("C Nz Ny Nx") : Dims("C Ny Nx");
  return has_sets ? Dims("M") + plane : plane;
}

void make_maps(const MapsOptions& options) {
  Run run("maps", options.common);
  Outputs& outputs = run.outputs();
  outputs.reads(options.input);
  announce_image(outputs, options.output, array_endings());
  if (!options.eigenvalues.empty()) announce_image(outputs, options.eigenvalues, array_endings());
  const KspaceFile file = read_kspace(options.input);
  run.facts().set("input", options.input).set("method", options.method);
  run.facts().set("coils", file.kspace.shape(0)).set("sets", options.sets);
  const bool is_espirit = options.method == "espirit";
  const Espirit plan = is_espirit ? plan_maps(options, file, run.limit_bytes()) : Espirit{};
  if (run.announce(is_espirit ? plan.planned_bytes : planned_bytes(options, file))) {
    return run.finish("");
  }
  Image result, eigenvalues;
  std::string summary;
  if (is_espirit) {
    MapsResult found = run_espirit(plan, options, file.kspace);
    summary = fmt::format("kept {} of {} vectors of an area of {} x {} x {}, crop {:.3f}\n",
                          found.vectors, found.of_vectors, found.area.extent[2],
                          found.area.extent[1], found.area.extent[0], found.crop);
    run.facts().set("vectors", found.vectors).set("of_vectors", found.of_vectors);
    run.facts().set("crop", found.crop);
    result.data = std::move(found.maps);
    eigenvalues.data = std::move(found.eigenvalues);
  } else if (options.method == "walsh") {
    result.data = walsh(coil_images(file.kspace), {.block = options.block, .sets = options.sets});
  } else {
    result.data = direct_maps(file.kspace, {.calibration = options.calibration});
  }
  result.names = map_names(file.kspace.rank(), options.sets > 1);
  result.data = without_sets(result.data);
  write_image(outputs, options.output, result);
  if (eigenvalues.data.defined()) {
    eigenvalues.names = map_names(file.kspace.rank(), options.sets > 1).without("C");
    eigenvalues.data = without_sets(eigenvalues.data);
    write_image(outputs, options.eigenvalues, eigenvalues);
  }
  run.finish(summary);
}

}  // namespace

void add_maps(CommandLine& line) {
  const auto options = std::make_shared<MapsOptions>();
  Command command = line.add("maps", "Estimate coil sensitivities from the middle of k-space");
  command.argument("KSPACE", options->input, "(coil, [z,] y, x): NPY, CFL, or raw scan")
      .argument("OUTPUT", options->output, "Output: ([set,] coil, [z,] y, x), .npy, .cfl, ..")
      .choice("--method", {"espirit", "walsh", "direct"}, options->method, "Method of estimation")
      .option("--calibration", "N", options->calibration,
              "Largest extent of the calibration area along each axis, in grid points, 2 or more")
      .option("--kernel", "N", options->kernel, "Extent of ESPIRiT's windows in grid points")
      .option("--threshold", "X", options->threshold,
              "Singular vectors are kept above sqrt(X) of the largest value, 0 to 1; or auto")
      .option("--rank", "N", options->rank,
              "Number of vectors that are kept, in place of a threshold")
      .option("--percent", "X", options->percent,
              "Vectors above X percent of the largest value are kept, in place of a threshold")
      .option("--crop", "X", options->crop,
              "Maps are 0 where the eigenvalue is below it, 0 to 1; or auto")
      .option("--sets", "N", options->sets, "Sets of maps, 1 to the number of coils")
      .flag("--soft", options->soft, "Maps fade out around the crop value")
      .flag("--intensity", options->intensity, "Maps keep the receive profile of the coils")
      .flag("--keep-phase", options->keep_phase,
            "Keeps the phase of the eigenvectors, in place of that of a virtual coil")
      .option(
          "--noise-variance", "X", options->noise_variance,
          "Noise variance per complex sample, for auto; default: from the smallest singular values")
      .option("--eigenvalues", "FILE", options->eigenvalues,
              "Output: eigenvalues ([set,] [z,] y, x), not cropped")
      .option("--block", "N", options->block, "Extent of Walsh's block in pixels, odd")
      .excludes(
          "--method",
          {"--kernel", "--threshold", "--rank", "--percent", "--crop", "--soft", "--intensity",
           "--keep-phase", "--noise-variance", "--eigenvalues", "--calibration"},
          "walsh")
      .excludes(
          "--method",
          {"--kernel", "--threshold", "--rank", "--percent", "--crop", "--soft", "--intensity",
           "--keep-phase", "--noise-variance", "--eigenvalues", "--sets", "--block"},
          "direct")
      .excludes("--method", {"--block"}, "espirit")
      .excludes("--rank", {"--percent", "--threshold"})
      .excludes("--percent", {"--threshold"})
      .action([options] { make_maps(*options); });
  add_common(command, options->common);
}

}  // namespace palimpsest::cli
