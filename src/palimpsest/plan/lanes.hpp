// SPDX-License-Identifier: Apache-2.0
// Internal: which steps of a plan run side by side.
#pragma once

#include <span>
#include <vector>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/graph/origin.hpp"

namespace palimpsest {

/// Steps, the order between them, and the duration of each.
struct LaneProblem {
  std::span<const int> order;                     // a legal one, with a low peak
  std::span<const std::vector<int>> before;       // per step: those that it waits for
  std::span<const index_t> work;                  // per step, in elements; at least 1
  index_t grain = 0;                              // a step with less work begins no lane
  std::span<const LaneLimit* const> limits = {};  // per step: of the group that it is of, or null
};

/// When each step would run if it took as long as its work, and where. The steps of a lane run one
/// after the other.
struct LaneSchedule {
  std::vector<int> order;              // by start
  std::vector<int> lane;               // per step
  std::vector<index_t> start, finish;  // per step: [start, finish)
  int n_lanes = 1;
  index_t length = 0;
};

/// Puts one step after the other, each of length 1.
LaneSchedule in_one_lane(std::span<const int> order);

/// Each step, in the given order, goes to the lane where it can start first; a small one to that of
/// the step that it waits for longest. Unused lanes are dropped. A group with a limit has steps in
/// at most so many lanes. Of the terms of a sum at most n_lanes are alive at once, besides the sum
/// of the terms before them.
/// Source  Graham 1969 (doi:10.1137/0117039)
LaneSchedule in_lanes(const LaneProblem& problem, int n_lanes);

/// The least waits of each step that imply all its needs. Needs are steps with lower numbers,
/// including its predecessor in its lane.
std::vector<std::vector<int>> least_waits(std::span<const std::vector<int>> needs,
                                          std::span<const int> lane, int n_lanes);

}  // namespace palimpsest
