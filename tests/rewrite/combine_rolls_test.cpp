// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/combine_rolls.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "rewrite/rewrite_runner.hpp"

namespace palimpsest {
namespace {

using testing::Agreement;
using testing::expect_left_alone;
using testing::expect_rewritten;
using V = Variable;

V roll(const V& x, index_t shift, index_t axis) { return ops::roll(x, shift, axis); }

struct CombineRollsTest : ::testing::Test {
  V m = make_input({DType::float64, {4, 6}, {}}, "m");
  V u = make_input({DType::float64, {kUnknown, 6}, {}}, "u");
};

TEST_F(CombineRollsTest, RollsOfRollsAreOne) {
  expect_rewritten(
      "combine_rolls",
      {{"two axes", roll(roll(m, 1, 1), 2, 0), {"Roll"}},
       {"one axis", roll(roll(u, -3, 0), 1, 0), {"Roll"}},
       {"one beside another", roll(ops::roll(u, {1, 2}, Axes{0, 1}), 3, 1), {"Roll"}},
       {"three", roll(roll(roll(m, 1, 0), 1, 1), 1, 0), {"Roll"}},
       {"by half and more", roll(ops::fftshift(u), 1, 0), {"Roll"}},
       {"back", roll(roll(u, 2, 0), -2, 0) * u, {"Mul"}},
       {"around", roll(roll(m, 5, 1), 1, 1), {}},
       {"by half and back", ops::exp(ops::ifftshift(ops::fftshift(u))), {"Exp"}},
       {"along other axes", ops::fftshift(ops::fftshift(u, Axes{0}), Axes{1}), {"Roll"}}},
      Agreement::bits);
}

// Only a call knows if the sum of shifts is a multiple of the extent.
TEST_F(CombineRollsTest, ShiftsMayGoAroundInACall) {
  const V twice = roll(roll(u, 2, 0), 3, 0);
  EXPECT_EQ(testing::ops_in({u}, {twice}, "FastRun"), std::vector<std::string>{"Roll"});
  const Function f = function({u}, twice);
  for (const index_t n : {1, 5, 4, 0}) {
    const Tensor t = Tensor::arange(6 * n, DType::float64).reshape({n, 6});
    EXPECT_TRUE(equal(f(t).tensor(), function({u}, twice, {.mode = NoRewrite()})(t).tensor())) << n;
  }
}

// A roll that only rolls read goes away with all of them.
TEST_F(CombineRollsTest, SeveralReadersAreRolls) {
  const V r = roll(m, 1, 0);
  expect_rewritten("combine_rolls",
                   {"differences", roll(r, 1, 1) - roll(r, -1, 1), {"Roll", "Roll", "Sub"}},
                   Agreement::bits);
  expect_left_alone("combine_rolls", roll(r, 1, 1) * r, "another reader");
  FunctionGraph shown({m}, {roll(r, 1, 1), r});
  EXPECT_EQ(combine_rolls(shown, {}).applied, 0) << "an output";
}

TEST_F(CombineRollsTest, LeavesOtherRollsAlone) {
  const V vast = roll(u, std::numeric_limits<index_t>::max(), 0);
  expect_left_alone("combine_rolls", roll(vast, std::numeric_limits<index_t>::max(), 0),
                    "overflow");
  expect_left_alone("combine_rolls", ops::fftshift(ops::fftshift(u)), "twice by half");
  expect_left_alone("combine_rolls", roll(roll(m, 1, 0) * 2.0, 1, 1), "not neighbours");
}

}  // namespace
}  // namespace palimpsest
