// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/placement.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace palimpsest {
namespace {

// Buffers that are live together must be disjoint, aligned and inside the arena.
void expect_valid(const std::vector<Interval>& intervals, const Placement& placement) {
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Interval& a = intervals[i];
    EXPECT_EQ(a.offset % kArenaAlignment, 0);
    EXPECT_GE(a.offset, 0);
    EXPECT_LE(a.offset + a.bytes, placement.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const Interval& b = intervals[j];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool disjoint = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      EXPECT_TRUE(!together || disjoint) << i << " and " << j;
    }
  }
}

TEST(Placement, NothingTakesNothing) {
  const Placement placement = place({});
  EXPECT_EQ(placement.bytes, 0);
  EXPECT_EQ(placement.lower_bound, 0);
}

TEST(Placement, ChainNeedsTwoBuffers) {
  std::vector<Interval> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({640, i, i + 1});
  const Placement placement = place(chain);
  expect_valid(chain, placement);
  EXPECT_EQ(placement.bytes, 1280);
  EXPECT_EQ(placement.lower_bound, 1280);
}

TEST(Placement, ForkJoinMeetsItsLowerBound) {
  std::vector<Interval> fork = {{256, 0, 1}};
  for (int i = 0; i < 6; ++i) fork.push_back({256, 1, 2});
  fork.push_back({256, 2, 3});
  const Placement placement = place(fork);
  expect_valid(fork, placement);
  EXPECT_EQ(placement.bytes, placement.lower_bound);
}

TEST(Placement, BuffersOfOneStepDoNotMeet) {
  std::vector<Interval> two = {{100, 0, 0}, {100, 0, 0}};
  const Placement placement = place(two);
  expect_valid(two, placement);
  EXPECT_EQ(placement.bytes, 228);  // the second starts at 128
}

TEST(Placement, RandomBuffersAreValidAndClose) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Interval> intervals;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random() % 100);
      intervals.push_back({static_cast<index_t>(64 * (1 + random() % 100)), first,
                           first + static_cast<int>(random() % 20)});
    }
    const Placement placement = place(intervals);
    expect_valid(intervals, placement);
    EXPECT_GE(placement.bytes, placement.lower_bound);
    EXPECT_LE(static_cast<double>(placement.bytes),
              1.5 * static_cast<double>(placement.lower_bound));
  }
}

}  // namespace
}  // namespace palimpsest
