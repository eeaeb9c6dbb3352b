// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/placement.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace palimpsest {
namespace {

index_t aligned(index_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool meet(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

// Puts each buffer, in the given order, at the lowest offset that is free during its life.
index_t first_fit(std::span<const Interval> intervals, std::span<const std::size_t> order,
                  std::vector<index_t>& offsets) {
  std::vector<std::size_t> placed;  // by offset
  index_t end = 0;
  for (std::size_t i : order) {
    index_t offset = 0;
    for (std::size_t j : placed) {
      if (!meet(intervals[i], intervals[j])) continue;
      if (offset + intervals[i].bytes <= offsets[j]) break;
      offset = std::max(offset, aligned(offsets[j] + intervals[j].bytes));
    }
    offsets[i] = offset;
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](index_t value, std::size_t j) { return value < offsets[j]; });
    placed.insert(position, i);
    end = std::max(end, offset + intervals[i].bytes);
  }
  return end;
}

index_t lower_bound_of(std::span<const Interval> intervals) {
  std::vector<std::tuple<int, int, index_t>> events;  // step, ends before begins, change
  for (const Interval& b : intervals) {
    events.emplace_back(b.first, 1, aligned(b.bytes));
    events.emplace_back(b.last + 1, 0, -aligned(b.bytes));
  }
  std::sort(events.begin(), events.end());
  index_t live = 0, highest = 0;
  for (const auto& [step, kind, change] : events) {
    live += change;
    highest = std::max(highest, live);
  }
  return highest;
}

}  // namespace

Placement place(std::span<Interval> intervals) {
  const auto by_key = [&](auto key) {
    std::vector<std::size_t> order(intervals.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return key(intervals[a]) < key(intervals[b]);
    });
    return order;
  };
  const std::vector<std::size_t> orders[] = {
      by_key([](const Interval& b) { return std::pair<index_t, index_t>(-b.bytes, b.first); }),
      by_key([](const Interval& b) { return std::pair<index_t, index_t>(b.first, -b.bytes); }),
      by_key([](const Interval& b) {
        return std::pair<index_t, index_t>(-(b.last - b.first), -b.bytes);
      }),
      by_key([](const Interval& b) {
        return std::pair<index_t, index_t>(-(b.last - b.first + 1) * b.bytes, b.first);
      }),
  };
  Placement best{-1, lower_bound_of(intervals)};
  std::vector<index_t> offsets(intervals.size());
  for (const std::vector<std::size_t>& order : orders) {
    const index_t bytes = first_fit(intervals, order, offsets);
    if (best.bytes >= 0 && bytes >= best.bytes) continue;
    best.bytes = bytes;
    for (std::size_t i = 0; i < offsets.size(); ++i) intervals[i].offset = offsets[i];
  }
  best.lower_bound = std::min(best.lower_bound, best.bytes);
  return best;
}

}  // namespace palimpsest
