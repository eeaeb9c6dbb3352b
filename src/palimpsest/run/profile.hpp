// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/plan/plan.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace PALIMPSEST_API palimpsest {

/// Time and memory of one step, over all calls with one plan.
struct StepProfile {
  std::string op_class;  // such as Add
  std::string op;        // with parameters
  double seconds = 0;
  index_t allocated_bytes = 0;  // results and scratch with a place of their own
  index_t in_place_bytes = 0;   // results in memory that was overwritten
};

/// Time and memory of the calls of one signature, measured and announced.
struct PlanProfile {
  std::string signature;
  std::uint64_t calls = 0;
  double seconds = 0;
  /// Seconds of MonitorMode, NanGuardMode or DebugMode, not part of `seconds`.
  double check_seconds = 0;
  std::vector<StepProfile> steps;
  index_t peak_bytes = 0;
  index_t arena_bytes = 0;
  index_t output_bytes = 0;
  index_t entry_copy_bytes = 0;
  index_t lower_bound_bytes = 0;
  index_t no_reuse_bytes = 0;
  index_t saved_by_view_bytes = 0;
  index_t saved_by_inplace_bytes = 0;
  /// Peak of the last call, measured by the allocator: peak_bytes plus the copies that the state of
  /// the call forced. -1 without profile_memory.
  index_t measured_peak_bytes = -1;
};

/// Time and memory of compiling and calling a function. Later calls do not change it.
struct Profile {
  std::string function;
  std::uint64_t calls = 0;
  double call_seconds = 0;
  /// In steps; the rest is the overhead of a call.
  double step_seconds = 0;
  /// In inspections; not part of the other two.
  double check_seconds = 0;
  double compile_seconds = 0;
  std::vector<RewriteProfile> rewrites;
  /// Refusals of in-place passes.
  std::vector<InplaceRefusal> refusals;
  std::vector<PlanProfile> plans;

  /// Seconds per class of ops, per op, over all plans.
  std::map<std::string, double> seconds_by_class() const;
  std::map<std::string, double> seconds_by_op() const;
  /// Tables as text.
  std::string summary() const;
  std::string to_json() const;
};

}  // namespace palimpsest
