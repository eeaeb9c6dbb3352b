// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/inplace.hpp"

#include <gtest/gtest.h>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/ops.hpp"
#include "samples/op_samples.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;

struct InplaceBuilders : ::testing::Test {
  Variable x = make_input({DType::float64, {3, 4}, {}}, "x");
  Variable y = make_input({DType::float64, {3, 4}, {}}, "y");
  Variable row = make_input({DType::float64, {4}, {}}, "row");
  Variable i = make_input({DType::int64, {3, 4}, {}}, "i");
  Variable z = make_input({DType::complex128, {3, 4}, {}}, "z");

  static std::set<int> overwritten(const Variable& v) { return overwritten_inputs(v.owner()); }
};

TEST_F(InplaceBuilders, OverwriteTheirFirstOperand) {
  for (const Variable& v :
       {inplace::add_inplace(x, y), inplace::mul_inplace(x, 2.0), inplace::sub_inplace(x, row),
        inplace::exp_inplace(x), inplace::clip_inplace(x, 0, 1), inplace::fma_inplace(x, y, y),
        inplace::conj_inplace(z), inplace::add_inplace(i, 1), inplace::bitwise_xor_inplace(i, i)}) {
    EXPECT_EQ(overwritten(v), std::set<int>{0}) << v.owner().op().str();
    EXPECT_TRUE(v.owner().op().name().ends_with("InPlace"));
    EXPECT_EQ(v.type(), v.owner().input(0).type());
  }
  const Variable chosen = inplace::where_inplace(ops::gt(x, 0), y, 1.0);
  EXPECT_EQ(overwritten(chosen), std::set<int>{1});
}

TEST_F(InplaceBuilders, GiveTheValuesOfTheirPureTwins) {
  const Tensor a = ops::sample_values({3, 4}, DType::float64, 1),
               b = ops::sample_values({3, 4}, DType::float64, 2);
  const auto check = [&](const Variable& in_place, const Variable& pure) {
    const Tensor expected = evaluate(pure, {{x, a.clone()}, {y, b.clone()}});
    EXPECT_TRUE(equal(evaluate(in_place, {{x, a.clone()}, {y, b.clone()}}), expected));
  };
  check(inplace::add_inplace(x, y), x + y);
  check(inplace::sigmoid_inplace(x), ops::sigmoid(x));
  check(inplace::where_inplace(ops::gt(y, 0.5), x, y), ops::where(ops::gt(y, 0.5), x, y));
  check(inplace::set_subtensor_inplace(x, {slice(0, 2)}, y(slice(1, 3))),
        ops::set_subtensor(x, {slice(0, 2)}, y(slice(1, 3))));
  check(inplace::gemm_inplace(x, 2, y, ops::dot(y.T(), y), 0.5),
        ops::gemm(x, 2, y, ops::dot(y.T(), y), 0.5));
}

TEST_F(InplaceBuilders, ExistForUpdatesAndProducts) {
  const Variable k = constant(Tensor::from<index_t>({2, 0}));
  for (const Variable& v :
       {inplace::set_subtensor_inplace(x, {1}, row),
        inplace::inc_subtensor_inplace(x, {slice(0, 2)}, row),
        inplace::set_subtensor_inplace(x(1), 3.0), inplace::inc_subtensor_inplace(x[k], 1.0),
        inplace::gemm_inplace(x, 1, x.copy(), ops::dot(y.T(), y), 1),
        inplace::ger_inplace(x, 0.5, y(all, 0), row)}) {
    EXPECT_EQ(overwritten(v), std::set<int>{0}) << v.owner().op().str();
    EXPECT_EQ(v.owner().input(0), x);
  }
  EXPECT_EQ(overwritten(inplace::gemv_inplace(row, 1, x.T(), y(all, 0), 1)), std::set<int>{0});
}

TEST_F(InplaceBuilders, AValueOfTheTargetItselfIsBuffered) {
  const Variable shifted = inplace::set_subtensor_inplace(x, {slice(1, {})}, x(slice(0, -1)));
  EXPECT_EQ(shifted.owner().op().tolerate_aliased(shifted.owner()), (IndexPairs{{0, 1}}));
  const Variable apart = inplace::set_subtensor_inplace(x, {slice(0, 1)}, x(slice(1, 2)));
  EXPECT_TRUE(apart.owner().op().tolerate_aliased(apart.owner()).empty());
  // The inputs that an op tolerates are part of its identity.
  const Variable other = inplace::set_subtensor_inplace(x, {slice(1, {})}, y(slice(0, -1)));
  EXPECT_FALSE(shifted.owner().op() == other.owner().op());
  EXPECT_NE(shifted.owner().op().hash(), other.owner().op().hash());
  EXPECT_EQ(*shifted.owner().op().pure(), *other.owner().op().pure());
}

TEST_F(InplaceBuilders, RefuseWhatDoesNotFitTheFirstOperand) {
  expect_error<DTypeError>([&] { inplace::add_inplace(i, x); },
                           "[add_inplace] the result does not fit the operand");
  expect_error<DTypeError>([&] { inplace::mul_inplace(i, 0.5); }, "expected int64 (3, 4)");
  expect_error<DTypeError>([&] { inplace::abs_inplace(z); }, "got float64 (3, 4)");
  expect_error<DTypeError>([&] { inplace::gt_inplace(x, y); }, "[gt_inplace]");
  expect_error<ShapeError>([&] { inplace::add_inplace(row, x); }, "expected float64 (4,)");
  const Variable column = make_input({DType::float64, {3, 1}, {}}, "column");
  expect_error<ShapeError>([&] { inplace::add_inplace(column, x); }, "expected float64 (3, 1)");
  const Variable r = make_input({DType::float64, {4, 4}, {}}, "r");
  const Variable c = make_input({DType::complex128, {4, 4}, {}}, "c");
  expect_error<DTypeError>([&] { inplace::gemm_inplace(r, 1, c, c, 1); }, "[gemm_inplace]");
  expect_error<TypeError>([&] { inplace::where_inplace(ops::gt(x, 0), 1.0, y); }, "got a number");
}

TEST_F(InplaceBuilders, RefuseWhatCannotBeOverwritten) {
  const Variable wide = ops::broadcast_to(row, {3, 4});
  expect_error<ValueError>([&] { inplace::add_inplace(wide, x); }, "a broadcast view");
  expect_error<ValueError>([&] { inplace::set_subtensor_inplace(wide, {0}, row); }, "Try a copy");
  const Variable square = make_input({DType::float64, {4, 4}, {}}, "square");
  for (const Variable& factor : {square, square.T(), square(slice({}, {}, -1))}) {
    const Variable other = make_input({DType::float64, {4, 4}, {}}, "other");
    expect_error<ValueError>([&] { inplace::gemm_inplace(square, 1, factor, other, 1); },
                             "shares memory with another operand");
  }
  expect_error<ValueError>([&] { inplace::set_subtensor_inplace(x, 1.0); }, "is not indexed");
}

}  // namespace
}  // namespace palimpsest
