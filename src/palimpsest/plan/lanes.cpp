// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/lanes.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "palimpsest/plan/position.hpp"

namespace palimpsest {
LaneSchedule in_one_lane(std::span<const int> order) {
  LaneSchedule result;
  result.order.assign(order.begin(), order.end());
  result.lane.assign(order.size(), 0);
  result.start.resize(order.size());
  result.finish.resize(order.size());
  for (int step : order) {
    result.start[at(step)] = result.length++;
    result.finish[at(step)] = result.length;
  }
  return result;
}

namespace {

// The lanes in which groups with a limit have steps already.
class LanesOfGroups {
 public:
  bool allows(const LaneLimit* limit, int lane) const {
    for (; limit; limit = limit->outer.get()) {
      const auto found = lanes_.find(limit);
      if (found == lanes_.end()) continue;
      const std::vector<int>& taken = found->second;
      const bool is_there = std::find(taken.begin(), taken.end(), lane) != taken.end();
      if (!is_there && static_cast<int>(taken.size()) >= limit->lanes) return false;
    }
    return true;
  }
  void note(const LaneLimit* limit, int lane) {
    for (; limit; limit = limit->outer.get()) {
      std::vector<int>& taken = lanes_[limit];
      if (std::find(taken.begin(), taken.end(), lane) == taken.end()) taken.push_back(lane);
    }
  }

 private:
  std::unordered_map<const LaneLimit*, std::vector<int>> lanes_;
};

// Steps form a tree: each step hands its result to the first step that waits for it. A path leads
// from step to step through the operand that is computed first. The other operands join the path at
// junctions; they are the terms of a sum. With n lanes the term of junction k begins once junction
// k - n is done. So at most n terms and the sum exist at a time; lanes that begin as soon as they
// are free would make more.
class Terms {
 public:
  explicit Terms(const LaneProblem& problem) : problem_(problem) {
    const std::size_t n = problem.order.size();
    next_.assign(n, -1);
    path_.assign(n, -1);
    number_.assign(n, 0);
    std::vector<int> position(n, 0);
    for (std::size_t k = 0; k < n; ++k) position[at(problem.order[k])] = static_cast<int>(k);
    for (const int step : problem.order) {
      int first = -1, operands = 0;
      for (const int earlier : problem.before[at(step)]) {
        if (next_[at(earlier)] < 0) next_[at(earlier)] = step;
        if (next_[at(earlier)] != step) continue;
        ++operands;
        if (first < 0 || position[at(earlier)] < position[at(first)]) first = earlier;
      }
      path_[at(step)] = first < 0 ? static_cast<int>(junctions_.size()) : path_[at(first)];
      if (first < 0) junctions_.emplace_back(), last_.push_back(step), begins_.push_back(step);
      auto& junctions = junctions_[at(path_[at(step)])];
      if (operands > 1) junctions.push_back(step);
      number_[at(step)] = static_cast<int>(junctions.size());
      last_[at(path_[at(step)])] = step;
    }
  }

  /// The steps that must be done before this one begins, if there are n lanes.
  template <class F>
  void for_each_wait(int step, int n_lanes, F&& f) const {
    constexpr int kDeepest = 64;
    int path = path_[at(step)];
    if (begins_[at(path)] != step) return;
    for (int depth = 0; depth < kDeepest; ++depth) {
      const int junction = next_[at(last_[at(path)])];
      if (junction < 0) return;
      path = path_[at(junction)];
      const int done = number_[at(junction)] - lanes_of(junction, n_lanes);
      if (done >= 1) f(junctions_[at(path)][at(done - 1)]);
    }
  }

 private:
  int lanes_of(int step, int n_lanes) const {
    if (problem_.limits.empty()) return n_lanes;
    for (const LaneLimit* limit = problem_.limits[at(step)]; limit; limit = limit->outer.get()) {
      n_lanes = std::min(n_lanes, limit->lanes);
    }
    return n_lanes;
  }

  const LaneProblem& problem_;
  std::vector<int> next_, path_, number_;    // per step; of junctions up to it
  std::vector<std::vector<int>> junctions_;  // per path
  std::vector<int> begins_, last_;           // per path: its ends
};

}  // namespace

LaneSchedule in_lanes(const LaneProblem& problem, int n_lanes) {
  const std::size_t n = problem.order.size();
  LaneSchedule result;
  result.lane.assign(n, 0);
  result.start.assign(n, 0);
  result.finish.assign(n, 0);
  std::vector<index_t> free(at(n_lanes), 0);
  LanesOfGroups groups;
  const Terms terms(problem);
  for (int step : problem.order) {
    const LaneLimit* const limit = problem.limits.empty() ? nullptr : problem.limits[at(step)];
    index_t ready = 0;
    int nearest = 0;  // the lane of the step that it waits for longest
    for (int earlier : problem.before[at(step)]) {
      if (result.finish[at(earlier)] <= ready) continue;
      ready = result.finish[at(earlier)];
      nearest = result.lane[at(earlier)];
    }
    terms.for_each_wait(step, n_lanes,
                        [&](int earlier) { ready = std::max(ready, result.finish[at(earlier)]); });
    int lane = groups.allows(limit, nearest) ? nearest : -1;
    if (lane < 0 || problem.work[at(step)] >= problem.grain) {
      for (int other = 0; other < n_lanes; ++other) {
        if (!groups.allows(limit, other)) continue;
        const bool is_sooner =
            lane < 0 || std::max(ready, free[at(other)]) < std::max(ready, free[at(lane)]);
        if (is_sooner) lane = other;
      }
    }
    groups.note(limit, lane);
    result.lane[at(step)] = lane;
    result.start[at(step)] = std::max(ready, free[at(lane)]);
    free[at(lane)] = result.finish[at(step)] =
        result.start[at(step)] + std::max<index_t>(problem.work[at(step)], 1);
    result.length = std::max(result.length, free[at(lane)]);
    result.n_lanes = std::max(result.n_lanes, lane + 1);
  }
  result.order.assign(problem.order.begin(), problem.order.end());
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&](int a, int b) { return result.start[at(a)] < result.start[at(b)]; });
  return result;
}

std::vector<std::vector<int>> least_waits(std::span<const std::vector<int>> needs,
                                          std::span<const int> lane, int n_lanes) {
  std::vector<std::vector<int>> result(needs.size());
  // Per step and lane: the last step there that is known to be done before it.
  std::vector<std::vector<int>> done(needs.size(), std::vector<int>(at(n_lanes), -1));
  for (std::size_t i = 0; i < needs.size(); ++i) {
    std::vector<int> latest_first = needs[i];
    std::sort(latest_first.begin(), latest_first.end(), std::greater<>());
    for (int earlier : latest_first) {
      int& known = done[i][at(lane[at(earlier)])];
      if (known >= earlier) continue;
      result[i].push_back(earlier);
      for (std::size_t k = 0; k < done[i].size(); ++k) {
        done[i][k] = std::max(done[i][k], done[at(earlier)][k]);
      }
      known = std::max(known, earlier);
    }
    std::reverse(result[i].begin(), result[i].end());
  }
  return result;
}

}  // namespace palimpsest
