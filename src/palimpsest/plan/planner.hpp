// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/plan/plan.hpp"

namespace palimpsest {

/// A compiled graph for the planner. Its inputs are the arguments and then the containers; its
/// outputs are the results and then the updates.
struct PlanRequest {
  const FunctionGraph* graph = nullptr;
  std::size_t n_arguments = 0;
  std::size_t n_results = 0;
  std::vector<bool> overwritten;       // per input: does a step write its memory?
  std::vector<bool> argument_is_lent;  // per argument: may results share its memory?
  std::vector<bool> borrowed;          // per result
  std::vector<bool> follows;           // per result: does it go where the arguments are?
  std::vector<int> updated;            // per update: which container; maybe one that is no input
  std::vector<Layout> input_layouts;   // byte offsets 0
  std::optional<index_t> budget;       // that the peak should meet
  double effort = 100;                 // see PlacementOptions
  bool reorders = true;                // for less memory? Else in the graph's order, in one lane
  bool places_joins = true;            // are parts of joined values computed in their slice?
  bool keeps_bits = false;         // may no step round otherwise because a value lies in a slice?
  int threads = 1;                 // that steps may run on at once
  index_t parallel_grain = 32768;  // elements; a smaller step is no reason for a second thread
};

/// Order, layouts and placement. On several threads as many lanes as peak within the budget, or
/// within twice the peak of one lane if there is none. One lane that exceeds the budget is planned
/// again with ten times the effort, and then with cheap steps repeated; what exceeds it even then
/// is returned all the same, with the smallest peak that was found. ShapeError when the extents do
/// not fit.
Plan make_plan(const PlanRequest& request);

}  // namespace palimpsest
