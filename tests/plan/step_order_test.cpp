// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/step_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace palimpsest {
namespace {

bool is_legal(const OrderProblem& problem, const std::vector<int>& order) {
  std::vector<int> position(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    position[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
  }
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < problem.n_steps; ++i) {
    if (sorted[static_cast<std::size_t>(i)] != i) return false;
  }
  return std::all_of(problem.constraints.begin(), problem.constraints.end(), [&](const auto& pair) {
    return position[static_cast<std::size_t>(pair.first)] <
           position[static_cast<std::size_t>(pair.second)];
  });
}

std::vector<int> given(const OrderProblem& problem) {
  std::vector<int> order(static_cast<std::size_t>(problem.n_steps));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

index_t lowest_of_all(const OrderProblem& problem) {
  std::vector<int> order = given(problem);
  index_t lowest = peak_of(problem, order);
  while (std::next_permutation(order.begin(), order.end())) {
    if (is_legal(problem, order)) lowest = std::min(lowest, peak_of(problem, order));
  }
  return lowest;
}

// Step i computes value i of the given bytes, read by `readers`.
OrderProblem problem_of(const std::vector<index_t>& bytes,
                        const std::vector<std::vector<int>>& readers) {
  OrderProblem problem;
  problem.n_steps = static_cast<int>(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    OrderProblem::Buffer buffer{bytes[i], {static_cast<int>(i)}, readers[i].empty()};
    for (int r : readers[i]) {
      buffer.steps.push_back(r);
      problem.constraints.emplace_back(static_cast<int>(i), r);
    }
    std::sort(buffer.steps.begin(), buffer.steps.end());
    problem.buffers.push_back(std::move(buffer));
  }
  return problem;
}

TEST(StepOrder, PeakCountsWhatIsLiveAtEachStep) {
  const OrderProblem chain = problem_of({10, 20, 30}, {{1}, {2}, {}});
  EXPECT_EQ(peak_of(chain, given(chain)), 50);
  const OrderProblem kept = problem_of({10, 20, 30}, {{}, {2}, {}});
  EXPECT_EQ(peak_of(kept, given(kept)), 60);
}

TEST(StepOrder, BranchesAreFinishedOneAfterTheOther) {
  // Three branches big -> small, summed at the end; written breadth first.
  const OrderProblem problem =
      problem_of({100, 100, 100, 1, 1, 1, 1}, {{3}, {4}, {5}, {6}, {6}, {6}, {}});
  EXPECT_EQ(peak_of(problem, given(problem)), 301);
  const std::vector<int> order = low_peak_order(problem);
  EXPECT_TRUE(is_legal(problem, order));
  EXPECT_EQ(peak_of(problem, order), 103);
}

TEST(StepOrder, OrderThatCannotBeBetterStays) {
  const OrderProblem chain = problem_of({10, 20, 30}, {{1}, {2}, {}});
  EXPECT_EQ(low_peak_order(chain), given(chain));
  EXPECT_EQ(low_peak_order(OrderProblem{}), std::vector<int>{});
}

OrderProblem random_tree(std::mt19937& random, int n) {
  std::vector<index_t> bytes;
  std::vector<std::vector<int>> readers;
  for (int i = 0; i < n; ++i) {
    bytes.push_back(static_cast<index_t>(random() % 20));
    readers.push_back({});
    if (i + 1 < n) {
      readers.back() = {i + 1 + static_cast<int>(random() % static_cast<unsigned>(n - i - 1))};
    }
  }
  return problem_of(bytes, readers);
}

OrderProblem random_graph(std::mt19937& random, int n) {
  std::vector<index_t> bytes;
  std::vector<std::vector<int>> readers;
  for (int i = 0; i < n; ++i) {
    bytes.push_back(static_cast<index_t>(random() % 20));
    readers.push_back({});
    for (int j = i + 1; j < n; ++j) {
      if (random() % static_cast<unsigned>(n) < 3) readers.back().push_back(j);
    }
  }
  return problem_of(bytes, readers);
}

TEST(StepOrder, TreesGetTheLowestPeak) {
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    const OrderProblem tree = random_tree(random, 7);
    const std::vector<int> order = low_peak_order(tree);
    ASSERT_TRUE(is_legal(tree, order));
    EXPECT_EQ(peak_of(tree, order), lowest_of_all(tree)) << round;
  }
}

TEST(StepOrder, FewStepsGetTheLowestPeak) {
  std::mt19937 random(2);
  int better = 0;
  for (int round = 0; round < 150; ++round) {
    const OrderProblem graph = random_graph(random, 7);
    const std::vector<int> order = low_peak_order(graph);
    ASSERT_TRUE(is_legal(graph, order));
    EXPECT_EQ(peak_of(graph, order), lowest_of_all(graph)) << round;
    better += peak_of(graph, order) < peak_of(graph, given(graph));
  }
  EXPECT_GT(better, 20);
}

TEST(StepOrder, LargeTreesAreQuickAndNeverWorse) {
  std::mt19937 random(3);
  const OrderProblem tree = random_tree(random, 20'000);
  const std::vector<int> order = low_peak_order(tree);
  EXPECT_TRUE(is_legal(tree, order));
  EXPECT_LT(peak_of(tree, order), peak_of(tree, given(tree)));
}

TEST(StepOrder, ManyStepsAreNeverWorseAndMostlyBetter) {
  std::mt19937 random(4);
  int better = 0;
  for (int n : {20, 50, 100, 300, 1000}) {
    const OrderProblem graph = random_graph(random, n);
    const std::vector<int> order = low_peak_order(graph);
    ASSERT_TRUE(is_legal(graph, order));
    EXPECT_LE(peak_of(graph, order), peak_of(graph, given(graph))) << n;
    better += peak_of(graph, order) < peak_of(graph, given(graph));
  }
  EXPECT_GE(better, 3);
}

TEST(StepOrder, OfVeryManyStepsThatAreNoTreeStays) {
  std::mt19937 random(5);
  const OrderProblem graph = random_graph(random, 4001);
  EXPECT_EQ(low_peak_order(graph, 100), given(graph));
}

TEST(StepOrder, SixteenStepsWithoutConstraintsAreSearchedExactly) {
  // Each of 8 values is read by one step: any order is legal, the alternating one is best.
  std::vector<index_t> bytes(16, 1);
  std::vector<std::vector<int>> readers(16);
  for (int i = 0; i < 8; ++i) {
    bytes[static_cast<std::size_t>(i)] = 100;
    readers[static_cast<std::size_t>(i)] = {15 - i};
    readers[static_cast<std::size_t>(15 - i)] = {};
  }
  const OrderProblem problem = problem_of(bytes, readers);
  EXPECT_EQ(peak_of(problem, low_peak_order(problem)), 108);
}

}  // namespace
}  // namespace palimpsest
