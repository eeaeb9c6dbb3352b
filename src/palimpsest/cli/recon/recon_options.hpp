// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palimpsest/cli/command_line.hpp"
#include "palimpsest/cli/steps/common_options.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"

namespace palimpsest::cli {

/// The options of `recon` and `plan`, as given.
struct ReconOptions : CommonOptions {
  /// Options that are given as the library takes them; reconstruction_options() adds the others.
  ScanReconstructionOptions how;
  std::string output, save, save_maps, plan, html, part;
  std::string method = "automatic";
  std::vector<std::string> regularizers;
  std::optional<double> lambda;
  index_t bits = 8, columns = 0;
  std::optional<index_t> iterations, seed;
  std::string partial = "none";
  std::string matrix, fov, as, frames, scale, time_limit, checkpoint, every;
  bool partial_on_interrupt = false, strict = false;
  std::string progress = "bar";
  std::string scratch;
  /// Text as given: `C=2,T=2`.
  std::string place;
  /// Ranks of a plan that need not be there.
  std::optional<index_t> ranks;
  /// The whole command line.
  std::vector<std::string> words;
};

/// Adds the options that change the image or its plan, but for outputs and messages.
Command add_image_options(CommandLine& line, const std::string& name,
                          const std::string& description, ReconOptions& options);

/// Seconds: `90s`, `10m`, `1.5h`.
///
/// Errors   UsageError naming the option
double parse_duration(const std::string& option, const std::string& text);

/// The ranks that reconstruct together: those of the launched run, or pretended ones for a plan.
///
/// Errors   UsageError: --place or --ranks is wrong
Team team_of(const ReconOptions& options);

/// Errors   UsageError: numbers out of range; options that have nothing to do here
ScanReconstructionOptions reconstruction_options(const ReconOptions& options);

/// The functions, as they are in force: those of --reg, or that of --lambda.
std::vector<std::string> regularizer_texts(const ReconOptions& options);

}  // namespace palimpsest::cli
