// SPDX-License-Identifier: Apache-2.0
// palimpsest recon: from k-space to an image. palimpsest plan: time and memory of that.
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/stop_watch.hpp"
#include "palimpsest/cli/images/image_files.hpp"
#include "palimpsest/cli/messages.hpp"
#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/cli/progress.hpp"
#include "palimpsest/cli/recon/recon_options.hpp"
#include "palimpsest/cli/recon/recon_report.hpp"
#include "palimpsest/cli/recon/recon_results.hpp"

namespace palimpsest::cli {
namespace {

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
      !options.save_maps.empty() || !options.plan.empty() || !options.html.empty() ||
      options.json) {
    return;
  }
  throw UsageError("no output is named. Try -o image.png");
}

// The messages and files of a run, or of its plan.
class Session {
 public:
  explicit Session(const ReconOptions& options) : options_(options), messages_(options.quiet) {
    if (options.threads) threads_.emplace(ConfigOverrides{.threads = *options.threads});
  }

  // Plans only: writes --plan and --report, and no result.
  void plan();
  void recon();

 private:
  JsonReport report_of(const char* command, const ScanReconstruction& reconstruction,
                       const ScanReconstructionOptions& how) const {
    JsonReport report = report_of_plan(command, reconstruction, how, regularizer_texts(options_));
    if (options_.json || !options_.report.empty()) add_inputs(report, how);
    return report;
  }
  void warn_of_end(const ScanReconstructionResult& result);
  ScanReconstructionResult solved(ScanReconstruction& reconstruction) const;
  void finish(const JsonReport& report, const std::string& summary);
  void be_silent();
  void recon(ScanReconstructionOptions& how);

  ReconOptions options_;
  std::optional<ConfigScope> threads_;
  Messages messages_;
  Outputs outputs_;
};

// Prints, and gives all files their names.
void Session::finish(const JsonReport& report, const std::string& summary) {
  outputs_.write(options_.log,
                 [&](const std::string& path) { write_text_atomically(path, messages_.text()); });
  outputs_.write(options_.report, [&](const std::string& path) { report.write(path); });
  if (options_.json) {
    print(report.text());
  } else {
    print(summary);
    for (const std::string& path : outputs_.written()) print(fmt::format("wrote {}\n", path));
  }
  outputs_.commit();
}

void Session::plan() {
  const ScanReconstructionOptions how = reconstruction_options(options_);
  if (how.team.rank() != 0) return;
  announce_files(outputs_, options_, /*plan_only=*/true);
  const ScanReconstruction reconstruction(how);
  const std::vector<RankReport> ranks = reports_of_ranks(reconstruction, how);
  write_plan(outputs_, options_, reconstruction.step());
  JsonReport report = report_of("plan", reconstruction, how);
  add_ranks(report, ranks);
  finish(report, scan_text(reconstruction, how) + plan_text(reconstruction) + ranks_text(ranks));
}

void Session::warn_of_end(const ScanReconstructionResult& result) {
  const Status status = result.status;
  if (status == Status::diverged || status == Status::breakdown) {
    messages_.line(
        fmt::format("warning: the iteration ended early ({}). The image is its last finite iterate",
                    name_of(status)));
  }
}

ScanReconstructionResult Session::solved(ScanReconstruction& reconstruction) const {
  if (options_.quiet) return reconstruction.run();
  const ScanReconstructionPlan& plan = reconstruction.plan();
  Progress progress(options_.progress == "json", name_of(plan.method),
                    plan.solves * plan.iterations, plan.peak_bytes);
  return reconstruction.run([&](index_t iterations, double residual) {
    progress.update(iterations, residual, reconstruction.measured_bytes());
  });
}

// Drops all outputs: only the first rank of a run writes and prints.
void Session::be_silent() {
  for (std::string* const path :
       {&options_.output, &options_.save, &options_.save_maps, &options_.report, &options_.plan,
        &options_.html, &options_.log}) {
    path->clear();
  }
  options_.json = false;
  options_.quiet = true;
  messages_ = Messages(true);
}

void Session::recon() {
  if (options_.dry_run) return plan();
  check_outputs(options_);
  ScanReconstructionOptions how = reconstruction_options(options_);
  if (how.team.rank() != 0) be_silent();
  try {
    recon(how);
  } catch (const std::exception& error) {
    how.team.abandon(error.what());
    throw;
  }
}

void Session::recon(ScanReconstructionOptions& how) {
  announce_files(outputs_, options_, /*plan_only=*/false);
  const WithInterrupts interrupts;
  how.cancel = interrupt_token();
  ScanReconstruction reconstruction(how);
  check_picture(options_, reconstruction.layout());
  announce_volumes(outputs_, options_, reconstruction.layout());
  if (!options_.json) {
    messages_.line(
        fmt::format("announced peak: {} bytes", with_commas(reconstruction.plan().peak_bytes)));
  }
  JsonReport report = report_of("recon", reconstruction, how);
  write_plan(outputs_, options_, reconstruction.step());
  const std::string memory_svg = options_.html.empty() ? "" : reconstruction.step().to_svg();
  const ScanReconstructionResult result = solved(reconstruction);
  // On another rank, too.
  const bool is_interrupted =
      interrupt_token().is_cancelled() || result.status == Status::cancelled;
  const bool has_image = result.image.defined() && result.iterations > 0;
  if (is_interrupted && !(options_.partial_on_interrupt && has_image)) {
    std::fprintf(stderr, "palimpsest: interrupted: no image is written%s\n",
                 options_.checkpoint.empty() ? "" : ", --resume goes on from the checkpoint");
    throw EndedEarly{kInterrupted};
  }
  if (how.team.rank() != 0) {
    if (is_interrupted) throw EndedEarly{kInterrupted};
    return;
  }
  if (is_interrupted) messages_.line("interrupted: the image so far is written");
  warn_of_end(result);
  RunFacts facts;
  const StopWatch watch;
  reconstruction.while_writing([&] {
    write_results(outputs_, options_, reconstruction.layout(), result);
    facts = {reconstruction.measured_bytes(), watch.seconds()};
    write_page(outputs_, options_, reconstruction, how, result, facts, memory_svg);
  });
  facts.measured_peak_bytes = reconstruction.measured_bytes();
  add_run(report, reconstruction, result, facts);
  finish(report, scan_text(reconstruction, how) + output_text(options_, reconstruction.layout()) +
                     run_text(reconstruction, result, facts));
  if (is_interrupted) throw EndedEarly{kInterrupted};
  if (result.status == Status::time_limit) throw EndedEarly{kTimeLimit};
  if (options_.strict && result.status != Status::converged) throw EndedEarly{kNotConverged};
}

}  // namespace

void add_recon(CommandLine& line) {
  const auto options = std::make_shared<ReconOptions>();
  Command command = add_image_options(
      line, "recon", "Reconstruct an image from k-space (ISMRMRD, NPY or BART CFL)", *options);
  command.option("-o,--output", "FILE", options->output,
                 "Output: image; the ending is the format: .png (magnitude of all planes), .nii, "
                 ".nii.gz, .h5 or .mrd (ISMRMRD images), .npy, .cfl, .hdr");
  add_written_image(command, options->part, options->bits, options->columns);
  command
      .option("--save", "FILE", options->save,
              "Output: complex image ([slice,] [frame,] [z,] y, x), in a format but .png")
      .option("--save-maps", "FILE", options->save_maps,
              "Output: the coil maps that were used, .npy, .cfl or .hdr")
      .option("--html", "FILE.html", options->html,
              "Output: page with image, facts, convergence and memory, for a browser")
      .flag("--strict", options->strict, "Exit code 4 where the iteration has not converged")
      .option("--time-limit", "TIME", options->time_limit,
              "Time after which the image so far is written, such as 90s or 10m; exit code 3")
      .option("--seed", "N", options->seed, "Seed of random shifts; default: 0")
      .option("--checkpoint", "FILE", options->checkpoint,
              "Output: state of the iteration, to go on from")
      .option("--every", "TIME", options->every, "Time between two checkpoints; default: 10m")
      .option("--resume", "FILE", options->how.resume, "Checkpoint to go on from")
      .flag("--partial-on-interrupt", options->partial_on_interrupt,
            "The image so far is written after an interrupt, too; the exit code stays 130")
      .choice("--progress", {"bar", "json"}, options->progress,
              "Progress on standard error: a bar, on terminals only, or a line of JSON each second")
      .flag("--dry-run", options->dry_run,
            "Plan only, as `palimpsest plan`: nothing is reconstructed, and no image written")
      .needs("--bits", {"--output"})
      .needs("--columns", {"--output"})
      .needs("--part", {"--output"})
      .needs("--every", {"--checkpoint"})
      .excludes("--resume", {"--start"})
      .excludes("--method",
                {"--strict", "--time-limit", "--checkpoint", "--resume", "--partial-on-interrupt",
                 "--progress"},
                "adjoint")
      .excludes("--quiet", {"--progress"})
      .action([options, &line] {
        options->words = line.words();
        Session(*options).recon();
      });
}

void add_plan(CommandLine& line) {
  const auto options = std::make_shared<ReconOptions>();
  add_image_options(line, "plan", "List the bytes of a reconstruction, stage by stage", *options)
      .option("--ranks", "N", options->ranks, "Ranks of the planned run; they need not exist")
      .action([options] { Session(*options).plan(); });
}

}  // namespace palimpsest::cli
