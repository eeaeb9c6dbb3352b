// SPDX-License-Identifier: Apache-2.0
// palimpsest recon: from k-space to an image; palimpsest plan: what that takes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/cli/byte_size.hpp"
#include "palimpsest/cli/clock.hpp"
#include "palimpsest/cli/commands.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/image.hpp"
#include "palimpsest/cli/outputs.hpp"
#include "palimpsest/cli/progress.hpp"
#include "palimpsest/cli/sampling_pattern.hpp"
#include "palimpsest/cli/scan.hpp"
#include "palimpsest/cli/sense.hpp"
#include "palimpsest/cli/sensitivities.hpp"
#include "palimpsest/cli/text.hpp"
#include "palimpsest/cli/volume.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"
#include "palimpsest/io/report.hpp"

namespace palimpsest::cli {
namespace {

struct ReconOptions {
  std::string input, output, maps, report, save, save_maps, plan;
  std::string method = "cg-sense";
  index_t iterations = 30, bits = 8, slice = 0;
  double lambda = 0.015, tolerance = 1e-6;
  std::optional<index_t> repetition;
  bool prewhiten = false, json = false, dry_run = false;
  std::string scratch;
  /// As given: `300M`.
  std::string memory;

  std::optional<index_t> budget() const {
    if (memory.empty()) return std::nullopt;
    return parse_bytes("--memory", memory);
  }
};

// What one run has done, for the report.
struct ReconRun {
  Scan scan;
  CenterRegion center;
  /// complex64 (Ny, Nx), for a volume (Nz, Ny, Nx).
  Tensor image;
  /// (plane, coil, y, x)
  Tensor maps;
  std::string status;
  index_t iterations = 0;
  std::vector<double> residuals;
  index_t announced_peak_bytes = 0, measured_peak_bytes = 0;
  Plan plan;
  double read_s = 0, sensitivities_s = 0, solve_s = 0, write_s = 0;
};

// White is the value that the brightest half percent (fat, vessels) exceeds, but at least this part
// of the largest value: the object may be small.
constexpr double kBelowWhite = 0.995, kLeastWhite = 0.4;

// Planes of a volume below this part of its largest value are rounding errors of empty ones.
constexpr double kEmptyPlane = 1e-6;

double largest_value(const Tensor& x) { return quantile(magnitude(x), 1); }

Tensor maps_of_plane(ReconRun& run, const ReconOptions& options, index_t plane) {
  const Tensor kspace = run.scan.kspace.select(0, plane);
  if (options.maps.empty()) return estimate_sensitivities(kspace, run.center);
  return run.maps.select(0, plane);
}

SenseOptions sense_options(const ReconOptions& options, Progress& progress, index_t plane) {
  SenseOptions sense;
  sense.is_iterative = options.method == "cg-sense";
  sense.iterations = options.iterations;
  sense.lambda = options.lambda;
  sense.tolerance = options.tolerance;
  sense.announce = [&options, plane](index_t bytes) {
    if (options.json || plane > 0) return;
    std::fprintf(stderr, "announced peak of the %s: %s bytes\n",
                 options.method == "cg-sense" ? "solve" : "adjoint", with_commas(bytes).c_str());
  };
  sense.progress = [&progress, plane, &options](index_t iteration, double residual) {
    progress.update(plane * options.iterations + iteration,
                    fmt::format("residual {:.1e}", residual));
  };
  return sense;
}

void solve_planes(ReconRun& run, const ReconOptions& options) {
  const index_t n = run.scan.n_planes();
  std::vector<Tensor> images, maps;
  const double empty = n > 1 ? kEmptyPlane * largest_value(run.scan.kspace) : 0;
  Progress progress(options.method, n * options.iterations);
  for (index_t plane = 0; plane < n; ++plane) {
    const Tensor kspace = run.scan.kspace.select(0, plane);
    if (n > 1 && largest_value(kspace) <= empty) {
      images.push_back(Tensor::zeros({run.scan.ny(), run.scan.nx()}, DType::complex64));
      maps.push_back(Tensor::zeros(kspace.shape(), DType::complex64));
      continue;
    }
    StopWatch watch;
    maps.push_back(maps_of_plane(run, options, plane).contiguous());
    run.sensitivities_s += watch.lap();
    SenseResult result = reconstruct_plane(kspace.contiguous(), maps.back(), run.scan.mask,
                                           sense_options(options, progress, plane));
    run.solve_s += result.seconds;
    run.status = result.status;
    run.iterations = std::max(run.iterations, result.iterations);
    run.residuals = std::move(result.residuals);
    run.plan = std::move(result.plan);
    run.announced_peak_bytes = std::max(run.announced_peak_bytes, result.announced_peak_bytes);
    run.measured_peak_bytes = std::max(run.measured_peak_bytes, result.measured_peak_bytes);
    images.push_back(center_crop(result.image, run.scan.image_ny, run.scan.image_nx).contiguous());
  }
  run.image = images.front();
  if (run.scan.is_volume) {
    Tensor volume = Tensor::empty({run.scan.image_ny, run.scan.image_nx, n}, DType::complex64);
    for (index_t plane = 0; plane < n; ++plane) {
      volume.select(2, plane).copy_from(images[static_cast<std::size_t>(plane)]);
    }
    run.image = volume;
  }
  Tensor all = Tensor::empty(run.scan.kspace.shape(), DType::complex64);
  for (index_t plane = 0; plane < n; ++plane) {
    all.select(0, plane).copy_from(maps[static_cast<std::size_t>(plane)]);
  }
  run.maps = all;
}

JsonReport report_of(const ReconRun& run, const ReconOptions& options) {
  const Scan& scan = run.scan;
  JsonReport sizes, seconds, report;
  sizes.set("coils", scan.n_coils()).set("planes", scan.n_planes());
  sizes.set("rows", scan.ny()).set("columns", scan.nx());
  sizes.set("image_rows", scan.image_ny).set("image_columns", scan.image_nx);
  sizes.set("samples_per_coil", count_samples(scan.mask));
  sizes.set("acceleration", scan.acceleration());
  sizes.set("center_rows", run.center.height).set("center_columns", run.center.width);
  seconds.set("read", run.read_s).set("sensitivities", run.sensitivities_s);
  seconds.set("solve", run.solve_s).set("write", run.write_s);
  report.set("input", options.input).set("format", name_of(scan.format));
  report.set("method", options.method)
      .set("maps", options.maps.empty() ? "estimated" : options.maps);
  report.set("sizes", sizes).set("lambda", options.lambda).set("tolerance", options.tolerance);
  report.set("status", run.status).set("iterations", run.iterations);
  report.set("residuals", run.residuals);
  report.set("announced_peak_bytes", run.announced_peak_bytes);
  report.set("measured_peak_bytes", run.measured_peak_bytes);
  report.set("seconds", seconds);
  return report;
}

void write_picture(const std::string& path, const Tensor& image, index_t bits) {
  Tensor plane = magnitude(image);
  if (plane.rank() == 3) plane = plane.select(0, plane.shape(0) / 2);
  const double largest = largest_value(plane);
  const double white = std::max(quantile(plane, kBelowWhite), kLeastWhite * largest);
  write_png(
      path, plane,
      {.bits = static_cast<int>(bits), .window_low = 0.0, .window_high = white > 0 ? white : 1.0});
}

// The endings of --plan, and what a file with each of them holds.
struct PlanFormat {
  const char* ending;
  std::string (Plan::*text)() const;
};
constexpr PlanFormat kPlanFormats[] = {
    {".svg", &Plan::to_svg}, {".json", &Plan::to_json}, {".txt", &Plan::to_string}};

const PlanFormat& format_of(const std::string& path) {
  const auto* const it =
      std::find_if(std::begin(kPlanFormats), std::end(kPlanFormats),
                   [&](const PlanFormat& format) { return path.ends_with(format.ending); });
  if (it != std::end(kPlanFormats)) return *it;
  throw UsageError("[--plan] got '" + path + "', expected a name that ends in .svg, .json or .txt");
}

void print_summary(const ReconRun& run, const ReconOptions& options, const Outputs& outputs) {
  const Scan& scan = run.scan;
  std::printf("%s",
              fmt::format("{}: {} coils, {} x {}{}, {:.2f}-fold undersampled\n", options.input,
                          scan.n_coils(), scan.ny(), scan.nx(),
                          scan.is_volume ? fmt::format(" x {} positions", scan.n_planes()) : "",
                          scan.acceleration())
                  .c_str());
  if (options.maps.empty()) {
    std::printf(
        "coil sensitivities estimated from the %lld x %lld centre\n",
        static_cast<long long>(std::min(run.center.height, SensitivityOptions{}.largest_center)),
        static_cast<long long>(std::min(run.center.width, SensitivityOptions{}.largest_center)));
  }
  if (!run.residuals.empty()) {
    std::printf("%s: %lld iterations, residual %.1e (%s)\n", options.method.c_str(),
                static_cast<long long>(run.iterations), run.residuals.back(), run.status.c_str());
  }
  std::printf(
      "%s", fmt::format("peak: announced {} bytes, measured {} bytes\n",
                        with_commas(run.announced_peak_bytes), with_commas(run.measured_peak_bytes))
                .c_str());
  std::printf("seconds: read %.2f, sensitivities %.2f, solve %.2f, write %.2f\n", run.read_s,
              run.sensitivities_s, run.solve_s, run.write_s);
  for (const std::string& path : outputs.written()) std::printf("wrote %s\n", path.c_str());
}

// -- whole scans in mapped files -------------------------------------------------------------------

SenseOptions volume_options(const ReconOptions& options, Progress& progress) {
  SenseOptions sense = sense_options(options, progress, 0);
  sense.announce = {};
  return sense;
}

void print_plan(const VolumePlan& plan, const Volume& volume, const ReconOptions& options) {
  if (options.json) {
    std::fputs(plan.report().text().c_str(), stdout);
    return;
  }
  const Extents image = volume.image_shape();
  std::printf("%s: %lld coils, image %s, %s\n%s", options.input.c_str(),
              static_cast<long long>(volume.n_coils()), to_string(image).c_str(),
              options.method.c_str(), plan.text(volume).c_str());
}

JsonReport volume_report(const SenseResult& result, const Volume& volume, const VolumePlan& plan,
                         const ReconOptions& options) {
  JsonReport report, sizes, seconds;
  sizes.set("coils", volume.n_coils()).set("image", to_string(volume.image_shape()));
  seconds.set("solve", result.seconds);
  report.set("input", options.input).set("method", options.method).set("maps", options.maps);
  report.set("sizes", sizes).set("lambda", options.lambda).set("tolerance", options.tolerance);
  report.set("status", result.status).set("iterations", result.iterations);
  report.set("residuals", result.residuals).set("plan", plan.report());
  report.set("announced_peak_bytes", result.announced_peak_bytes);
  report.set("measured_peak_bytes", result.measured_peak_bytes).set("seconds", seconds);
  return report;
}

// Where a raw scan is sorted: beside the result, for which there is room too.
std::string scratch_folder(const ReconOptions& options, bool plan_only) {
  if (!options.scratch.empty()) return options.scratch;
  for (const std::string& path : {options.save, options.output, options.report}) {
    if (plan_only || path.empty()) continue;
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
  }
  return std::filesystem::temp_directory_path().string();
}

// The whole scan at once, out of mapped files; `plan_only` looks at nothing but their headers.
void recon_volume(const ReconOptions& options, bool plan_only) {
  if (options.maps.empty()) {
    throw UsageError(
        "[--memory] a budget needs coil maps in a file, to be mapped like the scan. Try --maps, "
        "which recon --save-maps makes");
  }
  Outputs outputs;
  outputs.reads(options.input);
  outputs.reads(options.maps);
  outputs.announce(options.output, ".png");
  outputs.announce(options.save, ".npy");
  outputs.announce(options.report, ".json");
  const ScanOptions scan{
      .slice = options.slice, .repetition = options.repetition, .prewhiten = options.prewhiten};
  const Volume volume = map_volume(options.input, options.maps,
                                   {.scan = scan,
                                    .folder = scratch_folder(options, plan_only),
                                    .budget = options.budget(),
                                    .plan_only = plan_only});
  Progress progress(options.method, options.iterations);
  const SenseOptions sense = volume_options(options, progress);
  const VolumePlan plan = plan_volume(volume, sense, options.budget());
  if (plan_only) return print_plan(plan, volume, options);
  if (!options.json) std::fprintf(stderr, "%s", plan.text(volume).c_str());
  const SenseResult result = reconstruct_volume(volume, sense, plan);
  outputs.write(options.output, [&](const std::string& path) {
    // Of a volume the plane in the middle.
    const Tensor& x = result.image;
    write_picture(path, x.rank() == 3 ? x.select(0, x.shape(0) / 2) : x, options.bits);
  });
  outputs.write(options.save, [&](const std::string& path) { write_npy(path, result.image); });
  const JsonReport report = volume_report(result, volume, plan, options);
  outputs.write(options.report, [&](const std::string& path) { report.write(path); });
  if (options.json) {
    std::fputs(report.text().c_str(), stdout);
    return outputs.commit();
  }
  if (!result.residuals.empty()) {
    std::printf("%s: %lld iterations, residual %.1e (%s)\n", options.method.c_str(),
                static_cast<long long>(result.iterations), result.residuals.back(),
                result.status.c_str());
  }
  std::printf("peak: announced %s bytes, measured %s bytes; %.2f seconds\n",
              with_commas(result.announced_peak_bytes).c_str(),
              with_commas(result.measured_peak_bytes).c_str(), result.seconds);
  for (const std::string& path : outputs.written()) std::printf("wrote %s\n", path.c_str());
  outputs.commit();
}

void check_numbers(const ReconOptions& options);

void check_options(const ReconOptions& options) {
  if (options.output.empty() && options.save.empty() && options.report.empty() &&
      options.save_maps.empty() && options.plan.empty() && !options.json) {
    throw UsageError("no output is named. Try -o image.png");
  }
  check_numbers(options);
}

void check_numbers(const ReconOptions& options) {
  if (options.iterations < 1) {
    throw UsageError(fmt::format("[--iterations] got {}, expected at least 1", options.iterations));
  }
  if (!(options.lambda >= 0) || !(options.tolerance >= 0)) {
    throw UsageError(
        fmt::format("[--lambda, --tolerance] got {} and {}, expected numbers of at least 0",
                    options.lambda, options.tolerance));
  }
  if (options.bits != 8 && options.bits != 16) {
    throw UsageError(fmt::format("[--bits] got {}, expected 8 or 16", options.bits));
  }
}

void plan(const ReconOptions& options) {
  check_numbers(options);
  recon_volume(options, /*plan_only=*/true);
}

void recon(const ReconOptions& options) {
  if (options.dry_run) return plan(options);
  check_options(options);
  if (options.budget()) return recon_volume(options, /*plan_only=*/false);
  Outputs outputs;
  outputs.reads(options.input);
  outputs.reads(options.maps);
  outputs.announce(options.output, ".png");
  outputs.announce(options.save, ".npy");
  outputs.announce(options.save_maps, ".npy");
  outputs.announce(options.report, ".json");
  if (!options.plan.empty()) outputs.announce(options.plan, format_of(options.plan).ending);

  ReconRun run;
  StopWatch watch;
  run.scan = read_scan(
      options.input,
      {.slice = options.slice, .repetition = options.repetition, .prewhiten = options.prewhiten});
  if (!options.maps.empty()) run.maps = read_maps(options.maps, run.scan);
  run.read_s = watch.lap();
  run.center = dense_center(run.scan.mask);
  solve_planes(run, options);
  watch.lap();
  outputs.write(options.output,
                [&](const std::string& path) { write_picture(path, run.image, options.bits); });
  outputs.write(options.save, [&](const std::string& path) { write_npy(path, run.image); });
  outputs.write(options.save_maps, [&](const std::string& path) {
    write_npy(path, run.scan.is_volume ? run.maps.permute({1, 2, 3, 0}) : run.maps.select(0, 0));
  });
  run.write_s = watch.lap();
  const JsonReport report = report_of(run, options);
  outputs.write(options.report, [&](const std::string& path) { report.write(path); });
  outputs.write(options.plan, [&](const std::string& path) {
    write_text_atomically(path, (run.plan.*format_of(options.plan).text)());
  });
  if (options.json) {
    std::fputs(report.text().c_str(), stdout);
  } else {
    print_summary(run, options, outputs);
  }
  outputs.commit();
}

}  // namespace

void add_recon(CommandLine& line) {
  const auto options = std::make_shared<ReconOptions>();
  line.add("recon", "Reconstruct an image from k-space (ISMRMRD, NPY or BART CFL)")
      .argument("INPUT", options->input, "k-space: a raw file, or an array (coil, y, x)")
      .option("-o,--output", "FILE.png", options->output, "the magnitude as a picture")
      .choice("--method", {"cg-sense", "adjoint"}, options->method, "how")
      .option("--maps", "FILE", options->maps, "coil maps; else estimated from the k-space centre")
      .option("--iterations", "N", options->iterations, "at most this many")
      .option("--lambda", "X", options->lambda, "weight of |image|^2 against noise")
      .option("--tolerance", "X", options->tolerance, "stop at this relative residual")
      .option("--save", "FILE.npy", options->save, "the complex image")
      .option("--save-maps", "FILE.npy", options->save_maps, "the coil maps that were used")
      .option("--report", "FILE.json", options->report, "sizes, seconds, peaks, residuals")
      .option("--plan", "FILE", options->plan,
              "who lies where in memory, in one iteration: .svg, .json or .txt")
      .option("--bits", "N", options->bits, "of the picture: 8 or 16")
      .option("--slice", "N", options->slice, "of a raw file with several slices")
      .option("--repetition", "N", options->repetition, "of a raw file; else all are averaged")
      .option("--memory", "BYTES", options->memory,
              "a budget, such as 300M: the whole scan at once, out of mapped files")
      .option("--scratch", "FOLDER", options->scratch,
              "where --memory sorts a raw scan; else beside the result")
      .flag("--dry-run", options->dry_run, "only say what it takes, and where the bytes go")
      .flag("--prewhiten", options->prewhiten, "decorrelate the coils by the noise readouts")
      .flag("--json", options->json, "print the report instead of a summary")
      .action([options] { recon(*options); });
}

void add_plan(CommandLine& line) {
  const auto options = std::make_shared<ReconOptions>();
  line.add("plan", "Say what a reconstruction takes, and where the bytes go, without touching data")
      .argument("INPUT", options->input, "k-space: a raw file, or an array (NPY, CFL)")
      .choice("--method", {"cg-sense", "adjoint"}, options->method, "how")
      .option("--maps", "FILE", options->maps, "coil maps of the same shape")
      .option("--lambda", "X", options->lambda, "weight of |image|^2 against noise")
      .option("--memory", "BYTES", options->memory, "a budget, such as 300M")
      .option("--slice", "N", options->slice, "of a raw file with several slices")
      .option("--repetition", "N", options->repetition, "of a raw file; else all are averaged")
      .flag("--json", options->json, "print it as JSON")
      .action([options] { plan(*options); });
}

}  // namespace palimpsest::cli
