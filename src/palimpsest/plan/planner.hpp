// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
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
  std::vector<bool> overwritten;       // per input: true if a step writes its memory
  std::vector<bool> argument_is_lent;  // per argument: true if results may share its memory
  std::vector<bool> borrowed;          // per result
  std::vector<bool> follows;           // per result: true if it goes to the device of the arguments
  std::vector<int> updated;            // per update: the container's number; maybe not an input
  std::vector<Layout> input_layouts;   // byte offsets 0
  std::optional<index_t> budget;       // that the peak should meet
  double effort = 100;                 // see PlacementOptions
  bool reorders = true;                // for less memory; else the graph's order, in one lane
  bool places_joins = true;            // parts of joined values are computed in their slice
  bool keeps_bits = false;  // no step may round otherwise because a value lies in a slice
  /// The body of a loop: on the host, wherever its operands are; or each step where they are.
  enum class Body : std::uint8_t { none, on_host, anywhere };
  Body body = Body::none;
  int threads = 1;                 // that steps may run on at once
  index_t parallel_grain = 32768;  // elements; a smaller step does not justify a second thread
};

/// Order, layouts and placement. On several threads as many lanes as peak within the budget, or
/// within twice the peak of one lane without a budget. One lane that exceeds the budget is planned
/// again with ten times the effort, and then with cheap steps repeated. A plan that still exceeds
/// it is returned all the same, with the smallest peak that was found. ShapeError when the extents
/// do not fit.
Plan make_plan(const PlanRequest& request);

}  // namespace palimpsest
