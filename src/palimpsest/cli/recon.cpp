// SPDX-License-Identifier: Apache-2.0
// palimpsest recon: from k-space to an image; palimpsest plan: what that takes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/cli/clock.hpp"
#include "palimpsest/cli/code_pages.hpp"
#include "palimpsest/cli/commands.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/outputs.hpp"
#include "palimpsest/cli/progress.hpp"
#include "palimpsest/cli/recon/picture.hpp"
#include "palimpsest/cli/recon/recon_options.hpp"
#include "palimpsest/cli/recon/recon_report.hpp"
#include "palimpsest/cli/standard_output.hpp"
#include "palimpsest/cli/text.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/report.hpp"

namespace palimpsest::cli {
namespace {

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

// The first interrupt ends the iteration, a second one the process.
CancelToken& interrupt_token() {
  static CancelToken* const token = new CancelToken;
  return *token;
}

extern "C" void end_iteration(int) {
  if (interrupt_token().is_cancelled()) ::_exit(kInterrupted);
  interrupt_token().cancel();
}

class WithInterrupts {
 public:
  WithInterrupts() {
    interrupt_token().reset();
    before_ = std::signal(SIGINT, end_iteration);
  }
  WithInterrupts(const WithInterrupts&) = delete;
  WithInterrupts& operator=(const WithInterrupts&) = delete;
  ~WithInterrupts() { std::signal(SIGINT, before_); }

 private:
  void (*before_)(int) = SIG_DFL;
};

void check_outputs(const ReconOptions& options) {
  if (!options.output.empty() || !options.save.empty() || !options.report.empty() ||
      !options.save_maps.empty() || !options.plan.empty() || options.json) {
    return;
  }
  throw UsageError("no output is named. Try -o image.png");
}

// Announces what a run, or the plan of one, will write.
void announce(Outputs& outputs, const ReconOptions& options, bool plan_only) {
  for (const std::string& path : {options.input, options.maps, options.start, options.trajectory,
                                  options.weights, options.resume}) {
    outputs.reads(path);
  }
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
  const ScanReconstructionOptions how = reconstruction_options(options);
  Outputs outputs;
  announce(outputs, options, /*plan_only=*/true);
  const ScanReconstruction reconstruction(how);
  const JsonReport report = report_of_plan(reconstruction, how, regularizer_texts(options));
  write_plan(outputs, options, reconstruction.step());
  outputs.write(options.report, [&](const std::string& path) { report.write(path); });
  if (options.json) {
    print(report.text());
  } else {
    print(scan_text(reconstruction, how) + plan_text(reconstruction));
    print_written(outputs);
  }
  outputs.commit();
}

void warn_of_end(Status status) {
  if (status != Status::diverged && status != Status::breakdown) return;
  std::fprintf(stderr,
               "warning: the iteration ended early (%s). The image is its last finite "
               "iterate\n",
               std::string(name_of(status)).c_str());
}

void write_results(Outputs& outputs, const ReconOptions& options,
                   const ScanReconstructionResult& result) {
  outputs.write(options.output,
                [&](const std::string& path) { write_picture(path, result.image, options.bits); });
  outputs.write(options.save, [&](const std::string& path) { write_npy(path, result.image); });
  outputs.write(options.save_maps, [&](const std::string& path) { write_npy(path, result.maps); });
}

void recon(const ReconOptions& options) {
  if (options.dry_run) return plan(options);
  check_outputs(options);
  ScanReconstructionOptions how = reconstruction_options(options);
  Outputs outputs;
  announce(outputs, options, /*plan_only=*/false);
  const WithInterrupts interrupts;
  how.cancel = interrupt_token();
  ScanReconstruction reconstruction(how);
  if (!options.json) {
    std::fprintf(stderr, "announced peak: %s bytes\n",
                 with_commas(reconstruction.plan().peak_bytes).c_str());
  }
  JsonReport report = report_of_plan(reconstruction, how, regularizer_texts(options));
  write_plan(outputs, options, reconstruction.step());
  // A plan counts arrays; code that has done its work need not lie beside them.
  release_code_pages();
  ScanReconstructionResult result;
  {
    Progress bar(name_of(reconstruction.plan().method),
                 reconstruction.plan().solves * options.iterations);
    result = reconstruction.run([&](index_t iterations, double residual) {
      bar.update(iterations, fmt::format("residual {:.1e}", residual));
    });
  }
  if (interrupt_token().is_cancelled()) {
    std::fprintf(stderr, "palimpsest: interrupted: no image is written%s\n",
                 options.checkpoint.empty() ? "" : ", --resume goes on from the checkpoint");
    throw EndedEarly{kInterrupted};
  }
  warn_of_end(result.status);
  const StopWatch watch;
  write_results(outputs, options, result);
  const RunFacts facts{reconstruction.measured_bytes(), watch.seconds()};
  add_run(report, reconstruction, result, facts);
  outputs.write(options.report, [&](const std::string& path) { report.write(path); });
  if (options.json) {
    print(report.text());
  } else {
    print(scan_text(reconstruction, how) + run_text(reconstruction, result, facts));
    print_written(outputs);
  }
  outputs.commit();
  if (result.status == Status::time_limit) throw EndedEarly{kTimeLimit};
}

}  // namespace

void add_recon(CommandLine& line) {
  const auto options = std::make_shared<ReconOptions>();
  add_image_options(line, "recon", "Reconstruct an image from k-space (ISMRMRD, NPY or BART CFL)",
                    *options)
      .option("-o,--output", "FILE.png", options->output,
              "Output: magnitude as a picture; of a volume the middle plane along z")
      .option("--bits", "N", options->bits, "PNG bit depth: 8 or 16")
      .option("--save", "FILE.npy", options->save,
              "Output: complex image, ([slice,] [frame,] [z,] y, x)")
      .option("--save-maps", "FILE.npy", options->save_maps, "Output: the coil maps that were used")
      .option("--iterations", "N", options->iterations, "Most iterations")
      .option("--tolerance", "X", options->tolerance,
              "Residual at which the iteration stops; default: 1e-6 with l2 alone, else 0")
      .option("--time-limit", "TIME", options->time_limit,
              "Time after which the image so far is written, such as 90s or 10m; exit code 3")
      .option("--seed", "N", options->seed, "Of random shifts; default: 0")
      .option("--checkpoint", "FILE", options->checkpoint,
              "Output: state of the iteration, to go on from")
      .option("--every", "TIME", options->every, "Between two checkpoints; default: 10m")
      .option("--resume", "FILE", options->resume, "Checkpoint to go on from")
      .flag("--dry-run", options->dry_run,
            "Plan only, as `palimpsest plan`: nothing is reconstructed, and no image written")
      .needs("--bits", {"--output"})
      .needs("--every", {"--checkpoint"})
      .excludes("--resume", {"--start"})
      .excludes("--method",
                {"--iterations", "--tolerance", "--time-limit", "--checkpoint", "--resume"},
                "adjoint")
      .action([options] { recon(*options); });
}

void add_plan(CommandLine& line) {
  const auto options = std::make_shared<ReconOptions>();
  add_image_options(line, "plan", "List how many bytes a reconstruction takes, and where they go",
                    *options)
      .action([options] { plan(*options); });
}

}  // namespace palimpsest::cli
