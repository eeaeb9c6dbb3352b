// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/recon_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "palimpsest/cli/byte_size.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/recon/recon_results.hpp"

namespace palimpsest::cli {
namespace {

constexpr double kLambda = 0.015, kCheckpointSeconds = 600;

struct MethodName {
  const char* text;
  ReconstructMethod method;
};
constexpr MethodName kMethods[] = {{"automatic", ReconstructMethod::automatic},
                                   {"cg-sense", ReconstructMethod::cg},
                                   {"cg", ReconstructMethod::cg},
                                   {"fista", ReconstructMethod::fista},
                                   {"pogm", ReconstructMethod::pogm},
                                   {"primal-dual", ReconstructMethod::primal_dual},
                                   {"admm", ReconstructMethod::admm},
                                   {"pocs", ReconstructMethod::pocs},
                                   {"adjoint", ReconstructMethod::adjoint}};

ReconstructMethod method_of(const std::string& text) {
  return std::find_if(std::begin(kMethods), std::end(kMethods),
                      [&](const MethodName& name) { return name.text == text; })
      ->method;
}

// The folder in which a raw scan is sorted: that of a result, whose disk has room too.
std::string scratch_folder(const ReconOptions& options) {
  if (!options.scratch.empty()) return options.scratch;
  for (const std::string& path : {options.save, options.output, options.html, options.report}) {
    if (path.empty()) continue;
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
  }
  std::error_code none;
  const auto folder = std::filesystem::temp_directory_path(none);
  return none ? "." : folder.string();
}

index_t whole_number(const std::string& option, std::string_view text) {
  index_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 1) return value;
  throw UsageError(fmt::format("[{}] got '{}', expected a number of at least 1", option, text));
}

// Numbers along x, y and z: `NxM`, `NxMxK`.
template <class T>
std::vector<T> along_axes(const std::string& option, const std::string& text,
                          const std::string& expected) {
  std::vector<T> numbers;
  const char *at = text.data(), *const last = at + text.size();
  while (numbers.size() < 3) {
    T number = 0;
    const auto [end, error] = std::from_chars(at, last, number);
    if (error != std::errc() || !(number > 0)) break;
    numbers.push_back(number);
    if (end == last && numbers.size() > 1) return numbers;
    if (end == last || *end != 'x') break;
    at = end + 1;
  }
  throw UsageError(fmt::format("[{}] got '{}', expected {}", option, text, expected));
}

ScanOptions scan_options(const ReconOptions& options) {
  ScanOptions scan = options.how.scan;
  scan.encoded_pixels = options.matrix == "encoded";
  if (!options.matrix.empty() && !scan.encoded_pixels) {
    scan.matrix = along_axes<index_t>("--matrix", options.matrix,
                                      "pixels along x, y and z such as 256x192, or encoded");
  }
  if (!options.fov.empty()) {
    scan.field_of_view_mm =
        along_axes<double>("--fov", options.fov, "millimetres along x, y and z such as 240x180");
  }
  if (!options.as.empty()) {
    scan.as = parse_frame_counter(options.as);
    const bool is_named = (scan.as == FrameCounter::contrast && scan.contrast) ||
                          (scan.as == FrameCounter::phase && scan.phase) ||
                          (scan.as == FrameCounter::set && scan.set) ||
                          (scan.as == FrameCounter::repetition && scan.repetition);
    if (is_named) {
      const bool is_cardiac = scan.as == FrameCounter::phase;
      throw UsageError(
          fmt::format("[--as] {} leaves one frame with --{}{}. Try without one of them", options.as,
                      is_cardiac ? "cardiac-" : "", name_of(scan.as)));
    }
  }
  if (!options.frames.empty()) {
    const std::size_t slash = options.frames.find('/');
    const std::string_view text = options.frames;
    scan.readouts_per_frame = whole_number("--frames", text.substr(0, slash));
    if (slash != std::string::npos) {
      scan.readouts_per_step = whole_number("--frames", text.substr(slash + 1));
    }
  }
  return scan;
}

// Options that would do nothing are mistakes.
void check_effects(const ReconOptions& options, const ScanReconstructionOptions& how) {
  const auto& regs = how.regularizers;
  if (options.seed && !draws_shifts(regs)) {
    throw UsageError(
        "[--seed] has no effect: only l1wav and llr, alone and with shift=random, draw numbers. "
        "Try without --seed");
  }
  const bool has_scaled = std::any_of(regs.begin(), regs.end(), is_relative);
  if (!options.scale.empty() && !has_scaled && !how.keep_scale) {
    std::vector<std::string> names = regularizer_names(/*only_relative=*/true);
    const std::string last = names.back();
    names.pop_back();
    throw UsageError(fmt::format(
        "[--scale] has no effect without --reg of {} or {}, or --keep-scale. Try without "
        "--scale",
        fmt::join(names, ", "), last));
  }
}

void check_numbers(const ReconOptions& options) {
  expect_iterations(options.iterations.value_or(1));
  expect_at_least("--lambda", options.lambda.value_or(0), 0);
  expect_at_least("--tolerance", options.how.tolerance.value_or(0), 0);
  if (std::error_code none;
      !options.scratch.empty() && !std::filesystem::is_directory(options.scratch, none)) {
    throw UsageError(fmt::format("[--scratch] there is no directory '{0}'. Try mkdir -p '{0}'",
                                 options.scratch));
  }
  expect_bits(options.bits);
  expect_between("--columns", options.columns, 0);
  expect_between("--threads", options.threads.value_or(1), 1);
}

void set_scale(const ReconOptions& options, ScanReconstructionOptions& how) {
  if (options.scale.empty()) return;
  if (options.scale == "none") {
    how.scale = 1;
    return;
  }
  double value = 0;
  const char* const last = options.scale.data() + options.scale.size();
  const auto [end, error] = std::from_chars(options.scale.data(), last, value);
  if (error != std::errc() || end != last || !(value > 0) || !std::isfinite(value)) {
    throw UsageError(
        fmt::format("[--scale] got '{}', expected a positive number or none", options.scale));
  }
  how.scale = value;
}

}  // namespace

double parse_duration(const std::string& option, const std::string& text) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const double factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error == std::errc() && factor > 0 && value > 0 && std::isfinite(value)) {
    return value * factor;
  }
  throw UsageError(
      fmt::format("[{}] got '{}', expected a time such as 90s, 10m or 1.5h", option, text));
}

Team team_of(const ReconOptions& options) {
  if (options.ranks && (*options.ranks < 1 || *options.ranks > 1000000)) {
    throw UsageError(
        fmt::format("[--ranks] got {}, expected a number of at least 1", *options.ranks));
  }
  const Team team =
      options.ranks ? Team::pretend({{"rank", static_cast<int>(*options.ranks)}}) : Team::world();
  if (options.place.empty()) return team;
  index_t coils = 1, solves = 1;
  std::string_view left = options.place;
  while (!left.empty()) {
    const std::string_view entry = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), entry.size() + 1));
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool is_known = name == "C" || name == "T" || name == "S" || name == "Nx";
    if (!is_known || name.size() == entry.size()) {
      throw UsageError(fmt::format(
          "[--place] got '{}', expected ranks along C (coils), T (frames), S (slices) or Nx "
          "(planes of a volume), such as C=2,T=4",
          options.place));
    }
    (name == "C" ? coils : solves) *= whole_number("--place", entry.substr(name.size() + 1));
    if (coils * solves > team.size()) break;
  }
  if (coils * solves != team.size()) {
    throw UsageError(fmt::format("[--place] {} is for {} ranks, expected {}, those of {}",
                                 options.place, coils * solves, team.size(),
                                 options.ranks ? "--ranks" : "the run"));
  }
  return team.reshaped({{"solve", static_cast<int>(solves)}, {"coil", static_cast<int>(coils)}});
}

std::vector<std::string> regularizer_texts(const ReconOptions& options) {
  if (!options.regularizers.empty()) return options.regularizers;
  if (options.method == "adjoint") return {};
  return {fmt::format("l2:{}", options.lambda.value_or(kLambda))};
}

ScanReconstructionOptions reconstruction_options(const ReconOptions& options) {
  check_numbers(options);
  ScanReconstructionOptions result = options.how;
  result.scan = scan_options(options);
  for (const std::string& text : regularizer_texts(options)) {
    result.regularizers.push_back(parse_regularizer(text));
  }
  result.method = method_of(options.method);
  if (options.iterations) result.iterations = static_cast<int>(*options.iterations);
  set_scale(options, result);
  result.partial = options.partial == "homodyne" ? PartialFourier::homodyne
                   : options.partial == "pocs"   ? PartialFourier::pocs
                                                 : PartialFourier::none;
  if (!options.memory.empty()) result.budget = parse_bytes("--memory", options.memory);
  result.scratch = scratch_folder(options);
  result.keeps_maps = !options.save_maps.empty();
  result.writing_bytes = [options](const ScanLayout& scan) { return writing_bytes(options, scan); };
  if (!options.time_limit.empty()) {
    result.time_limit_s = parse_duration("--time-limit", options.time_limit);
  }
  if (!options.checkpoint.empty()) {
    result.checkpoint = CheckpointOptions{
        .path = options.checkpoint,
        .every_s =
            options.every.empty() ? kCheckpointSeconds : parse_duration("--every", options.every)};
  }
  result.seed = static_cast<std::uint64_t>(options.seed.value_or(0));
  result.team = team_of(options);
  check_effects(options, result);
  return result;
}

Command add_image_options(CommandLine& line, const std::string& name,
                          const std::string& description, ReconOptions& options) {
  std::vector<std::string> methods;
  for (const MethodName& method : kMethods) methods.emplace_back(method.text);
  ScanReconstructionOptions& how = options.how;
  Command command = line.add(name, description);
  command
      .argument("INPUT", how.kspace,
                "k-space: ISMRMRD file, or array (coil, [z,] y, x) as NPY or BART CFL")
      .option(
          "--reg", "TERM", options.regularizers,
          fmt::format("Regularizer, NAME[(DIMS)]:WEIGHT[,KEY=VALUE]..: {}; may be given several "
                      "times; default: l2:0.015",
                      fmt::join(regularizer_names(), ", ")))
      .choice("--method", methods, options.method,
              "Reconstruction method; automatic: the best for the regularizers")
      .option("--iterations", "N", options.iterations,
              "Most iterations; a solve that does them all has not converged; default: 300, with "
              "ball or random shifts 30")
      .option("--tolerance", "X", how.tolerance,
              "Relative change of the objective over 10 iterations at which the iteration stops, "
              "with l2 alone the residual; 0: never; default: 1e-4")
      .option("--maps", "FILE", how.maps,
              "Coil maps, NPY or BART CFL; default: estimated from calibration lines")
      .option("--sets", "N", how.sets, "Sets of coil maps that are estimated")
      .flag("--share-maps", how.share_maps,
            "Slices without calibration lines take the coil maps of the nearest parallel slice")
      .option("--lambda", "X", options.lambda, "The same as --reg l2:X; default: 0.015")
      .option("--scale", "X", options.scale,
              "Unit of the weights of regularizers, or none for 1; default: brightness of the data")
      .flag("--keep-scale", how.keep_scale, "Image divided by the scale, not in data units")
      .option("--trajectory", "FILE", how.scan.trajectory,
              "Trajectory of k-space (coil, readout, sample): NPY (readout, sample, 2 or 3) in "
              "cycles per field of view, or BART CFL")
      .option("--weights", "FILE", how.weights,
              "Weights of the samples along a trajectory, NPY (readout, sample) or BART CFL")
      .option("--as", "T=COUNTER", options.as,
              "Counter of a raw file that numbers the frames: repetition, contrast, phase or set")
      .option("--frames", "N[/STEP]", options.frames,
              "Readouts of a frame along a trajectory, and readouts from one frame to the next")
      .option("--basis", "FILE", how.basis,
              "Basis of a series, NPY (frame, coefficient) or BART CFL: its coefficients are the "
              "images, with dimension B in place of T")
      .option("--compress", "N", how.virtual_coils,
              "Virtual coils in place of those of the scan, with most of the energy")
      .choice("--partial", {"none", "homodyne", "pocs"}, options.partial,
              "Missing side of k-space: zeros, or estimated from a smooth phase")
      .option("--start", "FILE", how.start, "Image at which the iteration starts, NPY or BART CFL")
      .option("--phase", "FILE", how.phase,
              "Phase of the image, NPY or BART CFL ([slice,] [z,] y, x), radians or complex: the "
              "image has none, and --reg real holds")
      .option("--scratch", "FOLDER", options.scratch,
              "Folder of temporary files for arrays that do not fit into --memory; default: that "
              "of the "
              "results")
      .option("--slice", "N", how.scan.slice, "Slice of a raw file; default: all")
      .option("--contrast", "N", how.scan.contrast,
              "Contrast of a raw file; needed if it has several")
      .option("--cardiac-phase", "N", how.scan.phase,
              "Cardiac phase of a raw file; needed if it has several")
      .option("--set", "N", how.scan.set, "Set of a raw file; needed if it has several")
      .option("--repetition", "N", how.scan.repetition,
              "Repetition of a raw file; default: the mean of all")
      .option(
          "--matrix", "NxM", options.matrix,
          "Pixels of the image along x, y and, of a volume, z, or encoded: of the size that was "
          "measured; default: those of the header of a raw file")
      .option("--fov", "MMxMM", options.fov,
              "Field of view of the image along x, y and, of a volume, z, in mm; default: that of "
              "the header of a raw file")
      .flag("--whiten,--prewhiten", how.scan.prewhiten,
            "Decorrelation of the coils by the noise readouts of a raw file")
      .option(
          "--place", "C=N,T=N", options.place,
          "Ranks along C (coils), T (frames), S (slices) or Nx (planes of a volume) in a run of "
          "mpirun; default: as many solves side by side as there are, then coils")
      .option("--report", "FILE.json", options.report,
              "Output: sizes, plan, peaks in bytes, seconds, residuals")
      .option("--plan", "FILE", options.plan,
              "Output: memory plan of one iteration, as .svg, .json or .txt");
  add_shared(command, options)
      .excludes("--lambda", {"--reg"})
      .excludes("--method", {"--lambda", "--reg", "--start", "--iterations", "--tolerance"},
                "adjoint")
      .excludes("--sets", {"--maps"})
      .excludes("--share-maps", {"--maps"})
      .needs("--scratch", {"--memory"});
  return command;
}

}  // namespace palimpsest::cli
