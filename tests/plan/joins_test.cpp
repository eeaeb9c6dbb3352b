// SPDX-License-Identifier: Apache-2.0
// Values joined from others, which are computed in their place in the joined value.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

struct JoinsTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "x");
  Tensor value = Tensor::random_normal({6, 40}, DType::float64, {1, 2});
  index_t bytes = value.nbytes();

  // A separate step that is fused with nothing.
  static Variable step(const Variable& v, index_t by = 1) { return ops::roll(v, by, 0); }

  static std::vector<Out> outs(const std::vector<Variable>& outputs) {
    return {outputs.begin(), outputs.end()};
  }
  Plan plan_of(const Function& f) const { return f.plan(std::vector<Tensor>{value}); }

  static int count(const Plan& plan, std::string_view op) {
    return static_cast<int>(
        std::count_if(plan.steps.begin(), plan.steps.end(),
                      [&](const PlannedStep& s) { return s.node.op().name() == op; }));
  }
  static double norm_of_difference(const Tensor& a, const Tensor& b) {
    const Variable u = constant(a), v = constant(b);
    return function({}, ops::norm(u - v))()[0].item<float>();
  }
  // For sums of x above and below 0, on which the branch depends.
  void expect_right_in_both_branches(const Variable& chosen) const {
    const Function f = function({x}, chosen),
                   plain = function({x}, chosen, {.mode = Mode::no_rewrite});
    for (const double sign : {1.0, -1.0}) {
      Tensor v = Tensor::full({6, 40}, sign);
      v.set<double>({1, 2}, 0.25);
      EXPECT_TRUE(equal(f(v)[0], plain(v)[0]));
    }
  }
  // NoRewrite and FastRun must give the same bits, and the peak must be the announced one.
  void expect_right(const std::vector<Variable>& outputs) const {
    const Function plain = function({x}, outs(outputs), {.mode = Mode::no_rewrite});
    const Function fast = function({x}, outs(outputs));
    const auto expected = plain(value);
    const index_t peak = plan_of(fast).peak_bytes;
    const MemoryScope scope;
    const auto got = fast(value);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), peak);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(equal(got[i], expected[i])) << plan_of(fast).to_string();
    }
    const auto checked = function({x}, outs(outputs), {.mode = DebugMode()})(value);
    for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_TRUE(equal(checked[i], expected[i]));
  }
};

TEST_F(JoinsTest, PartsAreComputedInTheirSlices) {
  for (const index_t axis : {0, 1}) {
    const Variable joined = ops::join(axis, {step(x), step(x, 2), step(x, 3)});
    const Plan plan = plan_of(function({x}, {joined}));
    EXPECT_EQ(count(plan, "Join"), 0) << plan.to_string();
    EXPECT_EQ(plan.peak_bytes, 3 * bytes);
    EXPECT_EQ(plan.saved_by_join_bytes, 3 * bytes);
    expect_right({joined});
  }
}

TEST_F(JoinsTest, PartThatIsAnArgumentIsCopiedAndTheOthersAreNot) {
  const Variable joined = ops::join(0, {x, step(x)});
  const Plan plan = plan_of(function({x}, {joined}));
  EXPECT_EQ(count(plan, "Join"), 1);
  EXPECT_EQ(plan.peak_bytes, 2 * bytes);
  EXPECT_EQ(plan.saved_by_join_bytes, bytes);
  expect_right({joined});
}

TEST_F(JoinsTest, SamePartTwiceIsComputedOnceAndCopiedOnce) {
  const Variable part = step(x), joined = ops::join(1, {part, part});
  EXPECT_EQ(plan_of(function({x}, {joined})).peak_bytes, 2 * bytes);
  expect_right({joined});
}

TEST_F(JoinsTest, JoinsOfJoinsAreComputedInTheOutermost) {
  const Variable inner = ops::join(1, {step(x), step(x, 2)});
  const Variable other = ops::join(1, {step(x, 3), step(x, 4)});
  const Variable outer = ops::join(0, {inner, other});
  const Plan plan = plan_of(function({x}, {outer}));
  EXPECT_EQ(plan.steps.size(), 4U) << plan.to_string();
  EXPECT_EQ(plan.peak_bytes, 4 * bytes);
  EXPECT_EQ(plan.parts.size(), 6U);
  expect_right({outer});
}

TEST_F(JoinsTest, StacksAndTransposedPartsNeedNoCopyEither) {
  for (const index_t axis : {0, 1, 2}) {
    const Variable stacked = ops::stack({step(x), step(x, 2)}, axis);
    EXPECT_EQ(plan_of(function({x}, {stacked})).steps.size(), 2U);
    expect_right({stacked});
  }
  const Variable turned = ops::join(0, {ops::transpose(step(x)), ops::transpose(step(x, 2))});
  EXPECT_EQ(plan_of(function({x}, {turned})).steps.size(), 2U);
  expect_right({turned});
}

TEST_F(JoinsTest, ReshapedPartIsComputedInItsSliceWhereThatIsDense) {
  const auto flat = [](const Variable& v) { return ops::reshape(v, {240}); };
  const Variable dense = ops::join(0, {flat(step(x)), flat(step(x, 2))});
  EXPECT_EQ(plan_of(function({x}, {dense})).steps.size(), 2U);
  expect_right({dense});
  const auto column = [](const Variable& v) { return ops::reshape(v, {240, 1}); };
  const Variable strided = ops::join(1, {column(step(x)), column(step(x, 2))});
  EXPECT_EQ(plan_of(function({x}, {strided})).steps.size(), 3U);
  expect_right({strided});
}

TEST_F(JoinsTest, ChainInPlaceEndsInTheSlice) {
  const Variable part = ops::cumsum(ops::cumsum(step(x), 0) * 2.0, 1);
  const Variable joined = ops::join(1, {part, step(x)});
  EXPECT_EQ(plan_of(function({x}, {joined})).saved_by_join_bytes, 2 * bytes);
  expect_right({joined});
}

TEST_F(JoinsTest, PartThatIsAnOutputHasMemoryOfItsOwn) {
  const Variable part = step(x), joined = ops::join(0, {part, step(x, 2)});
  const Plan plan = plan_of(function({x}, {joined, part}));
  EXPECT_EQ(plan.saved_by_join_bytes, bytes) << plan.to_string();
  expect_right({joined, part});
}

TEST_F(JoinsTest, ReaderThatKeepsAPartLongerThanTheResultPreventsIt) {
  const Variable part = step(x), joined = ops::join(0, {part, step(x, 2)});
  const Variable late = ops::sum(part * ops::sum(joined));
  const Plan plan = plan_of(function({x}, {late}));
  EXPECT_EQ(plan.saved_by_join_bytes, bytes) << plan.to_string();
  expect_right({late});
}

TEST_F(JoinsTest, PartThatIsOverwrittenAfterTheJoinIsCopied) {
  const Variable part = step(x), joined = ops::join(0, {part, step(x, 2)});
  const Variable later = part + ops::sum(joined);
  expect_right({later, ops::max(joined)});
}

TEST_F(JoinsTest, ResultThatIsOverwrittenLeavesPartsToTheirReaders) {
  const Variable part = step(x), joined = ops::join(0, {part, step(x, 2)});
  const Variable doubled = ops::cumsum(joined, 0) * 2.0;
  expect_right({ops::roll(part, 1, 1) * ops::sum(doubled), doubled});
}

TEST_F(JoinsTest, PeakIsNeverHigherForIt) {
  // The first part is small; the next step needs much more memory than the joined value.
  const Variable big = ops::join(0, {x, x, x, x, x, x, x, x});
  const Variable part = ops::sum(x, {.axes = Axes{0}, .keepdims = true}),
                 other = ops::sum(ops::cumsum(big, 1), {.axes = Axes{0}, .keepdims = true});
  const Variable joined = ops::join(0, {part, other, ops::roll(other, 1, 1)});
  const Variable result = ops::sum(ops::roll(joined, 1, 0));
  const Plan placed = plan_of(function({x}, {result}));
  const ConfigScope scope({.rewrites_excluding = std::vector<std::string>{"place_joins"}});
  EXPECT_LE(placed.peak_bytes, plan_of(function({x}, {result})).peak_bytes);
}

TEST_F(JoinsTest, ModesAndTagsLeaveItOut) {
  const Variable joined = ops::join(0, {step(x), step(x, 2)});
  EXPECT_EQ(plan_of(function({x}, {joined}, {.mode = Mode::fast_compile})).steps.size(), 3U);
  EXPECT_EQ(plan_of(function({x}, {joined}, {.mode = Mode::no_rewrite})).steps.size(), 3U);
  for (const char* tag : {"place_joins", "inplace"}) {
    const ConfigScope scope({.rewrites_excluding = std::vector<std::string>{tag}});
    EXPECT_EQ(plan_of(function({x}, {joined})).steps.size(), 3U);
  }
  const ConfigScope scope({.rewrites_including = std::vector<std::string>{"place_joins"}});
  EXPECT_EQ(plan_of(function({x}, {joined}, {.mode = Mode::fast_compile})).steps.size(), 2U);
}

TEST_F(JoinsTest, TransformsAndProductsWriteTheirSlices) {
  const Variable z = make_input({DType::complex64, {24, 24}, {}}, "z");
  const Tensor values = Tensor::random_normal({24, 24}, DType::complex64, {3, 4});
  for (const index_t axis : {0, 1}) {
    const Variable joined =
        ops::join(axis, {ops::fft(z, {0, 1}), ops::matmul(z, z), ops::ifft(z, {axis})});
    const Function f = function({z}, joined, {.mode = DebugMode()});
    EXPECT_EQ(f.plan(std::vector<Tensor>{values}).steps.size(), 3U);
    const Function plain = function({z}, joined, {.mode = Mode::no_rewrite});
    EXPECT_LT(norm_of_difference(f(values)[0], plain(values)[0]), 1e-3);
  }
}

TEST_F(JoinsTest, ValuesThatAreSetInAFreshArrayAreComputedThere) {
  const Variable fresh = ops::zeros({20, 50}, DType::float64);
  const Variable one = ops::set_subtensor(fresh, {slice(0, 6), slice(0, 40)}, step(x));
  const Variable two = ops::set_subtensor(one, {slice(8, 20, 2), slice(10, 50)}, step(x, 2));
  const Plan plan = plan_of(function({x}, {two}));
  EXPECT_EQ(count(plan, "SetSubtensorInPlace"), 0) << plan.to_string();
  EXPECT_EQ(plan.peak_bytes, 20 * 50 * 8);
  expect_right({two});
}

TEST_F(JoinsTest, ManyColumnsAreComputedWhereTheyAreSet) {
  constexpr index_t n = 1500;
  const Variable v = make_input({DType::float64, {4}, {}}, "v");
  Variable filled = ops::zeros({4, n}, DType::float64);
  for (index_t i = 0; i < n; ++i) {
    filled = ops::set_subtensor(filled, {all, i}, step(v * static_cast<double>(i), i % 4));
  }
  const Function f = function({v}, filled),
                 plain = function({v}, filled, {.mode = Mode::no_rewrite});
  const Tensor values = Tensor::from<double>({1, 2, 3, 4});
  EXPECT_TRUE(equal(f(values)[0], plain(values)[0]));
  EXPECT_EQ(count(*f.latest_plan(), "SetSubtensorInPlace"), 0);
}

TEST_F(JoinsTest, OverlappingSetsStayInTheirOrder) {
  const Variable fresh = ops::zeros({10, 40}, DType::float64);
  const Variable one = ops::set_subtensor(fresh, {slice(0, 6)}, step(x));
  const Variable two = ops::set_subtensor(one, {slice(3, 9)}, step(x, 2));
  expect_right({two});
  const Variable read = ops::sum(one) + 0.0;
  expect_right({ops::set_subtensor(one, {slice(4, 10)}, step(x, 2)), read});
}

TEST_F(JoinsTest, BranchesOfAChoiceAreJoinedOnlyWhenTheyRun) {
  const Variable c = ops::gt(ops::sum(x), 0.0);
  const Variable yes = ops::join(0, {step(x), step(x, 2)});
  const Variable no = ops::join(0, {step(x, 3), x});
  const Variable chosen = ops::ifelse(c, yes, no);
  expect_right_in_both_branches(chosen);
}

// The part decides which branch runs, and only one branch has the array around it.
TEST_F(JoinsTest, AnArrayOfABranchIsNotFilledBeforeItsCondition) {
  const Variable part = step(ops::index(x, {slice(0, 2)}));
  const Variable c = ops::gt(ops::sum(part), 0.0);
  const Variable no = ops::set_subtensor(ops::roll(x, 1, 1), {slice(0, 2)}, part);
  const Variable chosen = ops::ifelse(c, x, no);
  expect_right_in_both_branches(chosen);
}

TEST_F(JoinsTest, RandomGraphsOfJoinsGiveWhatTheyGiveWithoutIt) {
  std::mt19937 random(11);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (int run = 0; run < 60; ++run) {
    std::vector<Variable> pool{x};
    for (int i = 0; i < 14; ++i) {
      const Variable a = pool[below(pool.size())], b = pool[below(pool.size())];
      switch (below(7)) {
        case 0:
          pool.push_back(ops::roll(a, 1, 1));
          break;
        case 1:
          pool.push_back(ops::cumsum(a, 1));
          break;
        case 2:
          pool.push_back(a + b);
          break;
        case 3:
          pool.push_back(
              ops::index(ops::join(0, {ops::roll(a, 1, 0), ops::cumsum(b, 0)}), {slice(2, 8)}));
          break;
        case 4:
          pool.push_back(ops::index(ops::join(1, {ops::join(1, {a, ops::roll(b, 2, 1)}), a * 0.5}),
                                    {all, slice(10, 90, 2)}));
          break;
        case 5:
          pool.push_back(
              ops::max(ops::stack({a * 2.0, ops::roll(b, 1, 0), a}, 1), {.axes = Axes{1}}));
          break;
        default:
          pool.push_back(ops::index(ops::set_subtensor(ops::zeros({9, 40}, DType::float64),
                                                       {slice(1, 7)}, ops::roll(a, 3, 0)),
                                    {slice(2, 8)}));
      }
    }
    std::vector<Variable> outputs{pool.back()};
    if (run % 2 == 0) outputs.push_back(pool[1 + below(pool.size() - 1)]);
    const Function plain = function({x}, outs(outputs), {.mode = Mode::no_rewrite});
    const Function fast = function({x}, outs(outputs));
    const auto expected = plain(value);
    const index_t peak = plan_of(fast).peak_bytes;
    const MemoryScope scope;
    const auto got = fast(value);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), peak);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_TRUE(equal(got[i], expected[i])) << "run " << run << "\n" << plan_of(fast).to_string();
    }
  }
}

}  // namespace
}  // namespace palimpsest
