// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/inspect/debug/debug_errors.hpp"
#include "palimpsest/run/mode.hpp"

namespace PALIMPSEST_API palimpsest {

/// All destination patterns.
inline constexpr std::array<std::string_view, 7> kAllPatterns{
    "initial", "previous", "c_contiguous", "f_contiguous", "strided", "unaligned", "wrong_size"};

/// Options of DebugMode; the defaults are the config's debug.* keys.
struct DebugOptions {
  Mode base = {};
  /// Number of repetitions of rewriting and planning, which must all give the same.
  int patience = static_cast<int>(config().debug_patience);
  /// Every value must be finite.
  bool check_finite = config().debug_check_finite;
  /// Layouts of destinations when steps are run again; some of kAllPatterns, or `ALL`.
  std::vector<std::string> preallocated = config().debug_preallocated;
  /// Last axes that the pattern `strided` varies.
  int preallocated_ndim = static_cast<int>(config().debug_preallocated_ndim);
  /// `auto`: page protection where the system has it; `off`: changed bytes are found afterwards.
  std::string guard_pages = config().debug_guard_pages;
  /// Fresh and dead memory is filled with a pattern.
  bool poison = config().debug_poison;
  /// `both`: the branch of an ifelse that is not taken is evaluated too, exceptions ignored;
  /// `taken`.
  std::string check_branches = config().debug_check_branches;
  /// The placement of buffers is checked while the plan runs.
  bool check_plan = config().debug_check_plan;
  /// Numbers of threads that must give the bits of one thread; 0: all that there are.
  std::vector<int> threads = {0};
  /// Destroys and views that were declared and never happened are logged.
  bool warn_not_reused = config().debug_warn_not_reused;
};

/// A mode for finding faults: its functions run every step in isolation and several times, then as
/// planned, and compare. They take the same arguments and return the same results as those of the
/// base mode. After an error containers and lent arguments are as before the call.
///
/// Errors  ValueError: a wrong pattern, number or word. function(): StochasticOrder,
///         InternalError. Calls: see DebugModeError
/// Cost    many times the work and memory of the base mode
Mode DebugMode(DebugOptions options = {});

}  // namespace palimpsest
