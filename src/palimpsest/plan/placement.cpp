// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/placement.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "palimpsest/plan/placement_problem.hpp"

namespace palimpsest {
namespace placement_detail {

Packing first_fit(const Problem& problem, std::span<const std::size_t> order) {
  Packing packing{std::vector<index_t>(problem.items.size(), 0), 0};
  std::vector<std::size_t> placed;  // by offset
  for (std::size_t i : order) {
    const Item& item = problem.items[i];
    index_t offset = 0;
    for (std::size_t j : placed) {
      const Item& other = problem.items[j];
      if (item.begin >= other.end || other.begin >= item.end) continue;
      if (offset + item.size <= packing.offsets[j]) break;
      offset = std::max(offset, packing.offsets[j] + other.size);
    }
    packing.offsets[i] = offset;
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](index_t value, std::size_t j) { return value < packing.offsets[j]; });
    placed.insert(position, i);
    packing.height = std::max(packing.height, offset + item.size);
  }
  return packing;
}

}  // namespace placement_detail

namespace {

using namespace placement_detail;

// First fit looks at every pair; the search keeps every item on its stack.
constexpr std::size_t kMostForFirstFit = 4000;
constexpr std::size_t kMostForSearch = 2000;
constexpr double kStepsPerEffort = 300'000;  // of about a millisecond

// Buffers without bytes take no part; `which` tells the others.
Problem problem_of(std::span<const Interval> intervals, index_t alignment,
                   std::vector<std::size_t>* which) {
  Problem problem;
  std::vector<int> times;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Interval& b = intervals[i];
    if (b.bytes == 0) continue;
    which->push_back(i);
    times.push_back(b.first);
    times.push_back(b.last + 1);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section = [&](int time) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  problem.n_sections = std::max(static_cast<int>(times.size()) - 1, 0);
  std::vector<index_t> change(times.size() + 1, 0);
  for (std::size_t i : *which) {
    const Interval& b = intervals[i];
    const Item item{(b.bytes + alignment - 1) / alignment, section(b.first), section(b.last + 1)};
    problem.items.push_back(item);
    change[static_cast<std::size_t>(item.begin)] += item.size;
    change[static_cast<std::size_t>(item.end)] -= item.size;
  }
  index_t live = 0;
  for (index_t step : change) problem.lower_bound = std::max(problem.lower_bound, live += step);
  return problem;
}

template <class Key>
Packing first_fit_by(const Problem& problem, Key key) {
  std::vector<std::size_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return key(problem.items[a]) < key(problem.items[b]);
  });
  return first_fit(problem, order);
}

Packing quick_packing(const Problem& problem) {
  using Pair = std::pair<index_t, index_t>;
  Packing best = skyline(problem);
  const auto keep_better = [&](Packing&& other) {
    if (other.height < best.height) best = std::move(other);
  };
  if (problem.items.size() > kMostForFirstFit || best.height == problem.lower_bound) return best;
  keep_better(first_fit_by(problem, [](const Item& b) { return Pair(-b.size, b.begin); }));
  keep_better(first_fit_by(problem, [](const Item& b) { return Pair(b.begin, -b.size); }));
  keep_better(first_fit_by(problem, [](const Item& b) { return Pair(b.begin - b.end, -b.size); }));
  keep_better(first_fit_by(
      problem, [](const Item& b) { return Pair(-(b.end - b.begin) * b.size, b.begin); }));
  return best;
}

// A search for better packings, as long as its effort lasts.
class Improvement {
 public:
  Improvement(const Problem& problem, double effort_units, Packing& best)
      : problem_(problem),
        best_(best),
        bound_(problem.lower_bound),
        left_(static_cast<std::uint64_t>(std::max(effort_units, 0.0) * kStepsPerEffort)) {}

  /// Tries to meet that height.
  void meet(index_t height) {
    if (best_.height > height && height >= bound_) try_height(height, left_);
  }
  /// Closes the gap to the lower bound by halves, at first with little effort for each height, then
  /// with more.
  void close_gap() {
    for (std::uint64_t slice = left_ / 32 + 1; left_ > 0 && bound_ < best_.height; slice *= 2) {
      index_t lowest = bound_;
      if (try_height(lowest++, 2 * slice)) return;
      while (lowest < best_.height && left_ > 0) {
        const index_t middle = lowest + (best_.height - lowest) / 2;
        if (!try_height(middle, slice)) lowest = middle + 1;
      }
    }
  }

 private:
  bool try_height(index_t height, std::uint64_t steps) {
    Effort effort(std::min(steps, left_));
    left_ -= effort.left();
    Packing found;
    const SearchResult result = search(problem_, height, effort, &found);
    left_ += effort.left();
    if (result == SearchResult::found) best_ = std::move(found);
    if (result == SearchResult::impossible) bound_ = std::max(bound_, height + 1);
    return result == SearchResult::found;
  }

  const Problem& problem_;
  Packing& best_;
  index_t bound_;  // no packing is lower
  std::uint64_t left_;
};

}  // namespace

ArenaSize place(std::span<Interval> intervals, const PlacementOptions& options) {
  std::vector<std::size_t> which;
  const Problem problem = problem_of(intervals, options.alignment, &which);
  for (Interval& b : intervals) b.offset = 0;
  if (which.empty()) return {};
  Packing best = quick_packing(problem);
  if (problem.items.size() <= kMostForSearch) {
    // The search for the capacity has an effort of its own: if it fails, the result is as without
    // it.
    Improvement(problem, options.effort / 2, best).meet(options.capacity / options.alignment);
    if (best.height * options.alignment > options.capacity) {
      Improvement(problem, options.effort, best).close_gap();
    }
  }
  ArenaSize result{0, problem.lower_bound * options.alignment};
  for (std::size_t k = 0; k < which.size(); ++k) {
    Interval& b = intervals[which[k]];
    b.offset = best.offsets[k] * options.alignment;
    result.bytes = std::max(result.bytes, b.offset + b.bytes);
  }
  result.lower_bound = std::min(result.lower_bound, result.bytes);
  return result;
}

}  // namespace palimpsest
