// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/cli/outputs.hpp"
#include "palimpsest/cli/recon/recon_options.hpp"
#include "palimpsest/cli/recon/recon_report.hpp"

namespace palimpsest::cli {

/// Names the files that a run reads and those that it, or only its plan, will write.
///
/// Errors   UsageError: those of Outputs
void announce_files(Outputs& outputs, const ReconOptions& options, bool plan_only);

/// Errors   UsageError: --bits and --columns that the picture of this scan has no use for;
///          --basis with images that have no place for coefficients
void check_picture(const ReconOptions& options, const ScanLayout& scan);

/// Announces the files that take the place of one where the slices are not one volume.
void announce_volumes(Outputs& outputs, const ReconOptions& options, const ScanLayout& scan);
/// Lines about these files, and about facts that the formats of the outputs lose.
std::string output_text(const ReconOptions& options, const ScanLayout& scan);

/// Peak memory of write_results() and write_page() beside image and maps.
SortingBytes writing_bytes(const ReconOptions& options, const ScanLayout& scan);

/// Writes image and maps.
void write_results(Outputs& outputs, const ReconOptions& options, const ScanLayout& scan,
                   const ScanReconstructionResult& result);

void write_plan(Outputs& outputs, const ReconOptions& options, const Plan& plan);

/// Writes the page of --html, with Plan::to_svg() of the step: a run does not keep the plan.
void write_page(Outputs& outputs, const ReconOptions& options, const ScanReconstruction& r,
                const ScanReconstructionOptions& how, const ScanReconstructionResult& result,
                const RunFacts& facts, const std::string& memory_svg);

}  // namespace palimpsest::cli
