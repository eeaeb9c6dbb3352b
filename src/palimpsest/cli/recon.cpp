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
#include "palimpsest/cli/outputs.hpp"
#include "palimpsest/cli/progress.hpp"
#include "palimpsest/cli/recon/image.hpp"
#include "palimpsest/cli/recon/recon_report.hpp"
#include "palimpsest/cli/recon/reconstruction.hpp"
#include "palimpsest/cli/standard_output.hpp"
#include "palimpsest/cli/text.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"
#include "palimpsest/io/report.hpp"

namespace palimpsest::cli {
namespace {

struct ReconOptions {
  std::string input, output, maps, report, save, save_maps, plan;
  std::string method = "cg-sense";
  index_t iterations = 30, bits = 8;
  double lambda = 0.015, tolerance = 1e-6;
  std::optional<index_t> slice, contrast, phase, set, repetition;
  bool prewhiten = false, json = false, dry_run = false;
  std::string scratch;
  /// As given: `300M`.
  std::string memory;

  std::optional<index_t> budget() const {
    if (memory.empty()) return std::nullopt;
    return parse_bytes("--memory", memory);
  }
};

// White is the value that the brightest half percent (fat, vessels) exceeds, but at least this part
// of the largest value: the object may be small.
constexpr double kBelowWhite = 0.995, kLeastWhite = 0.4;

// Of a volume the plane in the middle along z.
void write_picture(const std::string& path, const Tensor& image, index_t bits) {
  const Tensor plane = magnitude(image.rank() == 3 ? image.select(0, image.shape(0) / 2) : image);
  const double largest = quantile(plane, 1);
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

// Where a raw scan is sorted: beside the result, for which there is room too.
std::string scratch_folder(const ReconOptions& options) {
  if (!options.scratch.empty()) return options.scratch;
  for (const std::string& path : {options.save, options.output, options.report}) {
    if (path.empty()) continue;
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
  }
  std::error_code none;
  const auto folder = std::filesystem::temp_directory_path(none);
  return none ? "." : folder.string();
}

ReconstructionOptions reconstruction_options(const ReconOptions& options) {
  ReconstructionOptions result;
  result.kspace = options.input;
  result.maps = options.maps;
  result.scan = {.slice = options.slice,
                 .contrast = options.contrast,
                 .phase = options.phase,
                 .set = options.set,
                 .repetition = options.repetition,
                 .prewhiten = options.prewhiten};
  result.sense.is_iterative = options.method == "cg-sense";
  result.sense.iterations = options.iterations;
  result.sense.lambda = options.lambda;
  result.sense.tolerance = options.tolerance;
  result.budget = options.budget();
  result.scratch = scratch_folder(options);
  result.keeps_maps = !options.save_maps.empty();
  return result;
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

// Announces what a run, or the plan of one, will write.
void announce(Outputs& outputs, const ReconOptions& options, bool plan_only) {
  outputs.reads(options.input);
  outputs.reads(options.maps);
  if (!plan_only) {
    outputs.announce(options.output, ".png");
    outputs.announce(options.save, ".npy");
    outputs.announce(options.save_maps, ".npy");
  }
  outputs.announce(options.report, ".json");
  if (!options.plan.empty()) outputs.announce(options.plan, format_of(options.plan).ending);
}

void write_plan(Outputs& outputs, const ReconOptions& options, const Plan& plan) {
  outputs.write(options.plan, [&](const std::string& path) {
    write_text_atomically(path, (plan.*format_of(options.plan).text)());
  });
}

void print_written(const Outputs& outputs) {
  for (const std::string& path : outputs.written()) print(fmt::format("wrote {}\n", path));
}

// Says what a run takes; writes --plan and --report, but no result.
void plan(const ReconOptions& options) {
  check_numbers(options);
  Outputs outputs;
  announce(outputs, options, /*plan_only=*/true);
  const ReconstructionOptions how = reconstruction_options(options);
  const Reconstruction reconstruction(how);
  const JsonReport report = report_of_plan(reconstruction, how);
  write_plan(outputs, options, reconstruction.solver().step());
  outputs.write(options.report, [&](const std::string& path) { report.write(path); });
  if (options.json) {
    print(report.text());
  } else {
    print(scan_text(reconstruction, how) + plan_text(reconstruction));
    print_written(outputs);
  }
  outputs.commit();
}

void recon(const ReconOptions& options) {
  if (options.dry_run) return plan(options);
  check_options(options);
  Outputs outputs;
  announce(outputs, options, /*plan_only=*/false);
  const ReconstructionOptions how = reconstruction_options(options);
  Reconstruction reconstruction(how);
  if (!options.json) {
    std::fprintf(stderr, "announced peak: %s bytes\n",
                 with_commas(reconstruction.plan().peak_bytes).c_str());
  }
  JsonReport report = report_of_plan(reconstruction, how);
  write_plan(outputs, options, reconstruction.solver().step());
  ReconstructionResult result;
  {
    Progress bar(options.method, reconstruction.layout().n_items() * options.iterations);
    result = reconstruction.run([&](index_t iterations, double residual) {
      bar.update(iterations, fmt::format("residual {:.1e}", residual));
    });
  }
  if (result.status == "diverged" || result.status == "breakdown") {
    std::fprintf(stderr,
                 "warning: the iteration ended early (%s). The image is its last finite "
                 "iterate\n",
                 result.status.c_str());
  }
  const StopWatch watch;
  outputs.write(options.output,
                [&](const std::string& path) { write_picture(path, result.image, options.bits); });
  outputs.write(options.save, [&](const std::string& path) { write_npy(path, result.image); });
  outputs.write(options.save_maps, [&](const std::string& path) { write_npy(path, result.maps); });
  const RunFacts facts{reconstruction.measured_bytes(), watch.seconds()};
  add_run(report, result, facts);
  outputs.write(options.report, [&](const std::string& path) { report.write(path); });
  if (options.json) {
    print(report.text());
  } else {
    print(scan_text(reconstruction, how) + run_text(reconstruction, how, result, facts));
    print_written(outputs);
  }
  outputs.commit();
}

// What decides about the image, and so about its plan.
Command add_image_options(CommandLine& line, const std::string& name,
                          const std::string& description, ReconOptions& options) {
  Command command = line.add(name, description);
  command
      .argument("INPUT", options.input,
                "k-space: ISMRMRD file, or array (coil, [z,] y, x) as NPY or BART CFL")
      .choice("--method", {"cg-sense", "adjoint"}, options.method, "Reconstruction method")
      .option("--maps", "FILE", options.maps,
              "Coil maps, NPY or BART CFL; default: estimated from calibration lines")
      .option("--lambda", "X", options.lambda, "Weight of |image|^2 in the cost")
      .option("--memory", "BYTES", options.memory,
              "Most bytes held at a time, such as 300M or 1.5G; default: no limit")
      .option(
          "--scratch", "FOLDER", options.scratch,
          "Folder of the files that hold what --memory leaves no room for; default: that of the "
          "results")
      .option("--slice", "N", options.slice, "Slice of a raw file; needed if it has several")
      .option("--contrast", "N", options.contrast,
              "Contrast of a raw file; needed if it has several")
      .option("--phase", "N", options.phase,
              "Cardiac phase of a raw file; needed if it has several")
      .option("--set", "N", options.set, "Set of a raw file; needed if it has several")
      .option("--repetition", "N", options.repetition,
              "Repetition of a raw file; default: the mean of all")
      .flag("--prewhiten", options.prewhiten,
            "Decorrelation of the coils by the noise readouts of a raw file")
      .option("--report", "FILE.json", options.report,
              "Output: sizes, plan, peaks in bytes, seconds, residuals")
      .option("--plan", "FILE", options.plan,
              "Output: memory plan of one iteration, as .svg, .json or .txt")
      .flag("--json", options.json, "Report as JSON on standard output instead of a summary")
      .excludes("--method", {"--lambda"}, "adjoint")
      .needs("--scratch", {"--memory"});
  return command;
}

}  // namespace

void add_recon(CommandLine& line) {
  const auto options = std::make_shared<ReconOptions>();
  add_image_options(line, "recon",
                    "Reconstruct an image from Cartesian k-space (ISMRMRD, NPY or BART CFL)",
                    *options)
      .option("-o,--output", "FILE.png", options->output,
              "Output: magnitude as a picture; of a volume the middle plane along z")
      .option("--bits", "N", options->bits, "PNG bit depth: 8 or 16")
      .option("--save", "FILE.npy", options->save, "Output: complex image, (y, x) or (z, y, x)")
      .option("--save-maps", "FILE.npy", options->save_maps, "Output: the coil maps that were used")
      .option("--iterations", "N", options->iterations, "Most iterations")
      .option("--tolerance", "X", options->tolerance,
              "Relative residual at which the iteration stops")
      .flag("--dry-run", options->dry_run,
            "Plan only, as `palimpsest plan`: nothing is reconstructed, and no image written")
      .needs("--bits", {"--output"})
      .excludes("--method", {"--iterations", "--tolerance"}, "adjoint")
      .action([options] { recon(*options); });
}

void add_plan(CommandLine& line) {
  const auto options = std::make_shared<ReconOptions>();
  add_image_options(line, "plan", "List how many bytes a reconstruction takes, and where they go",
                    *options)
      .action([options] { plan(*options); });
}

}  // namespace palimpsest::cli
