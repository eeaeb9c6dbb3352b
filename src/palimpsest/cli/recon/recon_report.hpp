// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "palimpsest/graph/collective.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"
#include "palimpsest/io/report.hpp"

namespace palimpsest::cli {

/// The report of a reconstruction before it runs: options, sizes, plan.
JsonReport report_of_plan(const std::string& command, const ScanReconstruction& reconstruction,
                          const ScanReconstructionOptions& options,
                          const std::vector<std::string>& regularizers);
/// Adds the files that a run reads, with their sizes and digests: reads all of them once.
void add_inputs(JsonReport& report, const ScanReconstructionOptions& options);

/// Facts that are known only after a run.
struct RunFacts {
  index_t measured_peak_bytes = 0;
  double write_s = 0;
};
void add_run(JsonReport& report, const ScanReconstruction& reconstruction,
             const ScanReconstructionResult& result, const RunFacts& facts);

/// Names and values for the table of a page.
std::vector<std::pair<std::string, std::string>> page_facts(
    const ScanReconstruction& reconstruction, const ScanReconstructionOptions& options,
    const std::vector<std::string>& regularizers, const ScanReconstructionResult& result,
    const RunFacts& facts);

/// A rank of several, or the first of some that hold the same.
struct RankReport {
  index_t rank = 0, ranks = 1;
  index_t solves = 0, coils = 0;
  index_t peak_bytes = 0;
  /// Messages of one iteration.
  Traffic traffic;
  /// Bytes of the image sent to the first rank.
  index_t gathered_bytes = 0;
};
/// Bytes that each rank holds and sends; empty for one rank.
std::vector<RankReport> reports_of_ranks(const ScanReconstruction& reconstruction,
                                         const ScanReconstructionOptions& options);
void add_ranks(JsonReport& report, const std::vector<RankReport>& ranks);
/// A table. Lines.
std::string ranks_text(const std::vector<RankReport>& ranks);

/// `scan.h5: 8 coils, 64 x 64, 4.00-fold undersampled`, and where coil maps come from. Lines.
std::string scan_text(const ScanReconstruction& reconstruction,
                      const ScanReconstructionOptions& options);
/// Text lines: the peak, and the bytes of every stage.
std::string plan_text(const ScanReconstruction& reconstruction);
/// Text lines: the end of the solve, the peaks, the seconds.
std::string run_text(const ScanReconstruction& reconstruction,
                     const ScanReconstructionResult& result, const RunFacts& facts);

/// The most bytes that this process, or one that it started, had in memory, code and libraries
/// included.
index_t process_peak_bytes();

}  // namespace palimpsest::cli
