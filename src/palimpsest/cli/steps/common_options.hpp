// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/stop_watch.hpp"
#include "palimpsest/cli/command_line.hpp"
#include "palimpsest/cli/messages.hpp"
#include "palimpsest/cli/outputs.hpp"
#include "palimpsest/io/report.hpp"
#include "palimpsest/memory/allocator.hpp"

namespace palimpsest::cli {

/// Options of every command that computes.
struct CommonOptions {
  std::string memory, report, log, config;
  std::optional<index_t> threads;
  bool json = false, quiet = false, dry_run = false;
};
/// Adds those that mean the same everywhere: all but `report` and `dry_run`.
Command& add_shared(Command& command, CommonOptions& options);
/// Adds all of them.
Command& add_common(Command& command, CommonOptions& options);

/// A run of a command that computes: its outputs, its report, its announced and measured bytes.
class Run {
 public:
  /// Counts bytes and seconds from here on.
  ///
  /// Errors   UsageError: --threads below 1
  Run(const std::string& command, const CommonOptions& options);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  Outputs& outputs() { return outputs_; }
  JsonReport& facts() { return report_; }
  /// Announces the peak bytes of the run before it computes; true if only this was asked for.
  ///
  /// Errors   BudgetError: more than --memory
  bool announce(index_t peak_bytes);
  /// --memory; without it no limit.
  std::optional<index_t> limit_bytes() const;
  /// Bytes that are held now, counted from the start.
  index_t held_bytes() const { return static_cast<index_t>(scope_.live_bytes()); }
  /// The most that was held so far.
  index_t peak_bytes() const { return static_cast<index_t>(scope_.peak_bytes()); }
  /// A line of text, on standard error and in the log.
  void note(const std::string& text);
  /// Writes the report, prints it or the summary with the names of the written files, and gives all
  /// files their names.
  void finish(const std::string& summary);

 private:
  const CommonOptions& options_;
  std::optional<ConfigScope> threads_;
  MemoryScope scope_;
  StopWatch watch_;
  Outputs outputs_;
  JsonReport report_;
  Messages messages_;
  index_t announced_bytes_ = 0;
  bool is_planned_only_ = false;
};

}  // namespace palimpsest::cli
