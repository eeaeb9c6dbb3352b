// SPDX-License-Identifier: Apache-2.0
// Ways in which the planner meets a budget, and graphs whose arena must have the minimum size.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/plan/repeat_steps.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

struct BudgetTest : ::testing::Test {
  ConfigScope scope{{.threads = 1}};
  Variable x = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "x");
  Tensor value = Tensor::random_normal({16, 32}, DType::float64, {1, 2});
  index_t bytes = value.nbytes();

  Plan plan_of(const Function& f) const { return f.plan(std::vector<Tensor>{value}); }
  static Variable column(const Variable& v) {
    return ops::sum(v, {.axes = Axes{1}, .keepdims = true});
  }
  // `wide`, a function of two vectors, is needed before and after the step with the highest memory
  // use.
  Variable needs_wide_twice() const {
    const Variable wide = ops::exp(column(x) * ops::sum(x, {.axes = Axes{0}, .keepdims = true}));
    const Variable first = ops::sum(ops::roll(wide, 1, 0));
    Variable big = ops::roll(ops::join(0, {x, x, x, x}), 1, 1) * first;
    big = ops::cumsum(ops::roll(big, 2, 1), 1);
    return ops::sum(ops::cumsum(wide * ops::max(ops::roll(big, 1, 0)), 0));
  }
};

TEST_F(BudgetTest, CheapStepIsDoneAgainWhereKeepingItsResultWouldExceedTheBudget) {
  const Variable y = needs_wide_twice();
  const Function free = function({x}, y);
  const Plan plan = plan_of(free);
  EXPECT_EQ(plan.repeated_bytes, 0);
  const index_t budget = plan.peak_bytes - 1;
  const Function tight = function({x}, y, {.budget_bytes = budget});
  const Plan other = plan_of(tight);
  EXPECT_LE(other.peak_bytes, budget) << other.to_string();
  const auto repeated = std::count_if(other.steps.begin(), other.steps.end(),
                                      [](const PlannedStep& s) { return s.is_repeated; });
  EXPECT_GE(repeated, 1);
  EXPECT_EQ(other.repeated_bytes, repeated * bytes);
  EXPECT_NE(other.to_string().find("computed twice"), std::string::npos);
  const MemoryScope memory;
  const Tensor got = tight(value)[0];
  EXPECT_EQ(static_cast<index_t>(memory.peak_bytes()), other.peak_bytes);
  EXPECT_TRUE(equal(got, free(value)[0]));
  const Function checked = function({x}, y, {.mode = DebugMode(), .budget_bytes = budget});
  EXPECT_TRUE(equal(checked(value)[0], got));
}

// The first of the two steps alone would not compute the value again.
TEST_F(BudgetTest, WhatIsWrittenInTwoStepsIsNotRepeated) {
  const auto idle_steps = [&](bool writes_twice) {
    Variable wide = ops::exp(column(x) * ops::sum(x, {.axes = Axes{0}, .keepdims = true}));
    if (writes_twice) wide = ops::cumsum(wide, 0);
    const Variable first = ops::sum(ops::roll(wide, 1, 0));
    const Variable last = wide * ops::max(ops::roll(x * first, 1, 0));
    const Plan plan = plan_of(function({x}, ops::sum(last)));
    int count = 0;
    for (int full = 0; full < static_cast<int>(plan.steps.size()); ++full) {
      const std::vector<bool> is_kept(plan.buffers.size(), false);
      for (const Repetition& r : repetitions_at(plan, is_kept, full)) {
        count += plan.buffers[static_cast<std::size_t>(r.buffer)].bytes == bytes ? 1 : 0;
      }
    }
    return count;
  };
  EXPECT_GT(idle_steps(false), 0);
  EXPECT_EQ(idle_steps(true), 0);
}

// Views of a recomputed value become views of the second result, each with its own layout.
TEST_F(BudgetTest, LaterUsersOfARepeatedResultReadItAsTheyDid) {
  const Variable wide = ops::exp(column(x) * ops::sum(x, {.axes = Axes{0}, .keepdims = true}));
  const Variable big = ops::max(ops::roll(x * ops::sum(ops::roll(wide, 1, 0)), 1, 0));
  const Variable turned = ops::cumsum(ops::transpose(wide), 0);
  const Plan plan = plan_of(function({x}, {ops::sum(ops::roll(wide * big, 2, 0) - wide),
                                           ops::sum(turned * big), ops::sum(wide * big)}));
  const auto slot = [](const Plan& p, int i) { return p.slots.at(static_cast<std::size_t>(i)); };
  std::size_t most_views = 0;
  for (int full = 0; full < static_cast<int>(plan.steps.size()); ++full) {
    const std::vector<bool> is_kept(plan.buffers.size(), false);
    for (const Repetition& r : repetitions_at(plan, is_kept, full)) {
      const Plan other = with_repeated(plan, r);
      ASSERT_EQ(other.steps.size(), plan.steps.size() + 1);
      std::set<int> views{plan.steps[static_cast<std::size_t>(r.step)].outputs[0]};
      for (auto i = static_cast<std::size_t>(r.first_late); i < plan.steps.size(); ++i) {
        for (std::size_t k = 0; k < plan.steps[i].inputs.size(); ++k) {
          const int number = plan.steps[i].inputs[k];
          const Slot before = slot(plan, number), after = slot(other, other.steps[i + 1].inputs[k]);
          const bool moves = before.buffer == r.buffer;
          if (moves) views.insert(number);
          EXPECT_EQ(after.buffer, moves ? static_cast<int>(plan.buffers.size()) : before.buffer);
          EXPECT_EQ(after.layout, before.layout) << other.to_string();
        }
        for (const int number : plan.steps[i].outputs) {
          if (slot(plan, number).buffer == r.buffer) views.insert(number);
        }
      }
      EXPECT_EQ(other.slots.size(), plan.slots.size() + views.size());
      most_views = std::max(most_views, views.size());
    }
  }
  EXPECT_GT(most_views, 1u);
}

TEST_F(BudgetTest, NothingIsRepeatedThatDoesNotLowerThePeak) {
  const Variable y = ops::roll(ops::flip(ops::roll(x, 1, 0), {0}), 1, 1);
  const Plan plan = plan_of(function({x}, y, {.budget_bytes = bytes}));
  EXPECT_EQ(plan.repeated_bytes, 0);
  EXPECT_GT(plan.peak_bytes, bytes);
}

TEST_F(BudgetTest, ErrorNamesThePeakAndTheLargestBuffersAndNothingHasRun) {
  Variable big = ops::roll(x, 1, 0);
  big = ops::cumsum(ops::join(0, {big, big}), 1);
  const Function f = function({x}, ops::sum(ops::roll(big, 1, 0)), {.budget_bytes = 100});
  const index_t peak = plan_of(f).peak_bytes;
  try {
    f(value);
    FAIL() << "no error";
  } catch (const BudgetError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("a peak of " + std::to_string(peak) + " bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("expected at most 100"), std::string::npos) << text;
    EXPECT_NE(text.find("Roll (" + std::to_string(2 * bytes) + ")"), std::string::npos) << text;
  }
}

TEST_F(BudgetTest, LibraryMemoryIsListedApart) {
  const Variable z = make_input({DType::complex128, {60, 60}, {}}, "z");
  const Function f = function({z}, ops::fft(z, {0, 1}, {.centered = true}));
  const Plan& plan = f.plan(std::vector<TensorType>{z.type()});
  EXPECT_GT(plan.external_bytes, 0);
  EXPECT_EQ(plan.peak_bytes, 60 * 60 * 16);
  EXPECT_NE(plan.to_string().find("held beside it by libraries"), std::string::npos);
}

// -- shapes --------------------------------------------------------------------------------------

struct ShapesTest : BudgetTest {
  void expect_tight(const Variable& y) const {
    for (const Mode mode : {Mode::no_rewrite, Mode::fast_run}) {
      const Function f = function({x}, {Out(y, {.borrow = true})}, {.mode = mode});
      const Plan plan = plan_of(f);
      EXPECT_EQ(plan.arena_bytes, plan.lower_bound_bytes) << plan.to_string();
      const MemoryScope memory;
      f(value);
      EXPECT_EQ(static_cast<index_t>(memory.peak_bytes()), plan.peak_bytes);
    }
  }
  static Variable chain(Variable v, int n) {
    for (int i = 0; i < n; ++i) v = ops::roll(ops::flip(v, {0}), i + 1, 0);
    return v;
  }
};

TEST_F(ShapesTest, ArenaOfAChainIsItsLowerBound) {
  expect_tight(chain(x, 60));
  EXPECT_EQ(plan_of(function({x}, {Out(chain(x, 60), {.borrow = true})})).arena_bytes, 2 * bytes);
}

TEST_F(ShapesTest, ArenaOfAForkAndJoinIsItsLowerBound) {
  Variable sum = chain(x, 4);
  for (int k = 1; k < 15; ++k) sum = sum + ops::cumsum(chain(ops::roll(x, k, 1), 3), 1);
  expect_tight(sum);
}

TEST_F(ShapesTest, ArenaOfAUIsItsLowerBound) {
  std::vector<Variable> bridges;
  Variable v = x;
  for (int i = 0; i < 4; ++i) {
    bridges.push_back(v = ops::cumsum(ops::roll(v, 1, 0), 1));
    v = ops::index(ops::roll(v, 1, 1), {slice({}, {}, 2), slice({}, {}, 2)});
  }
  for (int i = 4; i-- > 0;) {
    v = ops::repeat(ops::repeat(v, 2, 0), 2, 1);
    v = ops::cumsum(v * 0.5 + bridges[static_cast<std::size_t>(i)], 0);
  }
  expect_tight(v);
}

TEST_F(ShapesTest, ArenaOfConjugateGradientsIsItsLowerBound) {
  const auto A = [](const Variable& p) {
    return p * 4.0 - ops::roll(p, 1, 0) - ops::roll(p, -1, 0);
  };
  Variable z = ops::zeros_like(x), r = x, p = x, rho = ops::norm2(x);
  for (int i = 0; i < 5; ++i) {
    const Variable q = A(p), alpha = rho / ops::sum(p * q);
    z = z + alpha * p;
    r = r - alpha * q;
    const Variable next = ops::norm2(r);
    p = r + next / rho * p;
    rho = next;
  }
  expect_tight(z);
}

}  // namespace
}  // namespace palimpsest
