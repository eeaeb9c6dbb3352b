// SPDX-License-Identifier: Apache-2.0
// Internal: how destinations are laid out when a step is run again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "palimpsest/inspect/debug/isolated_step.hpp"

namespace palimpsest {

/// A way to lay out all results of a step.
struct Pattern {
  std::string name;
  std::vector<Destination> destinations;
  /// Destinations contain the results of the last run.
  bool keeps_previous = false;
  /// Only for ops that say themselves where their results lie.
  bool is_wrong_size = false;
};

/// All that the names of the options stand for, for results of these dtypes and extents.
std::vector<Pattern> patterns_for(const DebugOptions& options, std::span<const Layout> dense);

/// Errors  ValueError naming an unknown pattern
void check_pattern_names(const std::vector<std::string>& names);

}  // namespace palimpsest
