// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/steps/common_options.hpp"

#include "palimpsest/base/error.hpp"
#include "palimpsest/cli/byte_size.hpp"
#include "palimpsest/cli/steps/prelude.hpp"

namespace palimpsest::cli {

Command& add_shared(Command& command, CommonOptions& options) {
  return command
      .option("--memory", "BYTES", options.memory,
              "Limit on memory in bytes, such as 300M or 1.5G; default: none")
      .option("--threads", "N", options.threads,
              "Threads that compute, at least 1; default: all of the machine")
      .option("--log", "FILE.txt", options.log, "Output: the lines of standard error")
      .option("--config", "FILE.json", options.config,
              "Options as a JSON object, such as {\"threads\": 2}; the command line wins")
      .flag("--json", options.json, "Report as JSON on standard output instead of a summary")
      .flag("--quiet", options.quiet, "Only errors on standard error");
}

Command& add_common(Command& command, CommonOptions& options) {
  return add_shared(command, options)
      .option("--report", "FILE.json", options.report,
              "Output: facts about the run, peaks in bytes, times in seconds")
      .flag("--dry-run", options.dry_run, "The peak only: nothing is computed, no result written");
}

Run::Run(const std::string& command, const CommonOptions& options)
    : options_(options), messages_(options.quiet) {
  if (options.threads) {
    expect_between("--threads", *options.threads, 1);
    threads_.emplace(ConfigOverrides{.threads = *options.threads});
  }
  report_.set("version", 2).set("command", command);
  outputs_.reads(options.config);
  outputs_.announce(options.report, ".json");
  outputs_.announce(options.log, ".txt");
}

Run::~Run() = default;

void Run::note(const std::string& text) { messages_.line(text); }

std::optional<index_t> Run::limit_bytes() const {
  if (options_.memory.empty()) return std::nullopt;
  return parse_bytes("--memory", options_.memory);
}

bool Run::announce(index_t peak_bytes) {
  announced_bytes_ = peak_bytes;
  report_.set("announced_peak_bytes", peak_bytes);
  if (const auto limit = limit_bytes(); limit && peak_bytes > *limit) {
    throw BudgetError(fmt::format(
        "[--memory] does not suffice: got {} bytes, expected at least {}. Try --memory {}", *limit,
        peak_bytes, peak_bytes));
  }
  is_planned_only_ = options_.dry_run;
  if (!options_.json && !is_planned_only_) {
    note(fmt::format("announced peak: {} bytes", with_commas(peak_bytes)));
  }
  return is_planned_only_;
}

void Run::finish(const std::string& summary) {
  if (!is_planned_only_) {
    report_.set("measured_peak_bytes", static_cast<index_t>(scope_.peak_bytes()));
    report_.set("seconds", watch_.seconds());
  }
  outputs_.write(options_.log,
                 [&](const std::string& path) { write_text_atomically(path, messages_.text()); });
  outputs_.write(options_.report, [&](const std::string& path) { report_.write(path); });
  if (options_.json) {
    print(report_.text());
  } else if (is_planned_only_) {
    print(fmt::format("peak: {} bytes\n", with_commas(announced_bytes_)));
  } else {
    print(summary);
    for (const std::string& path : outputs_.written()) print("wrote " + path + "\n");
  }
  outputs_.commit();
}

}  // namespace palimpsest::cli
