// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/linear.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using V = std::vector<double>;

Variable input(Extents shape, DType dtype = DType::float64) {
  return make_input({dtype, std::move(shape), {}});
}

V run(const Variable& y, const Variable& x, const Tensor& value) {
  return evaluate(y, {{x, value}}).to(DType::float64).to_vector<double>();
}

TEST(Reduce, OverAxesOrAll) {
  const Variable x = input({2, 3});
  const Tensor value = Tensor::from<double>({1, 2, 3, 4, 5, 6}, Extents{2, 3});
  EXPECT_EQ(run(ops::sum(x), x, value), (V{21}));
  EXPECT_EQ(run(ops::sum(x, {Axes{-1}, false}), x, value), (V{6, 15}));
  EXPECT_EQ(run(ops::prod(x, {Axes{0}, false}), x, value), (V{4, 10, 18}));
  EXPECT_EQ(run(ops::max(x, {Axes{1}, false}), x, value), (V{3, 6}));
  EXPECT_EQ(run(ops::min(x), x, value), (V{1}));
  EXPECT_EQ(ops::sum(x, {Axes{0}, true}).type().shape, (Extents{1, 3}));
  EXPECT_EQ(ops::sum(x, {Axes{}, false}), x);
}

TEST(Reduce, BoolsAndIntegersSumInInt64) {
  const Variable b = input({3}, DType::bool_);
  const Tensor value = Tensor::from<int>({1, 0, 1}).to(DType::bool_);
  EXPECT_EQ(ops::sum(b).dtype(), DType::int64);
  EXPECT_EQ(run(ops::sum(b), b, value), (V{2}));
  EXPECT_EQ(run(ops::any(b), b, value), (V{1}));
  EXPECT_EQ(run(ops::all_of(b), b, value), (V{0}));
  EXPECT_EQ(ops::sum(input({3}, DType::uint8)).dtype(), DType::uint64);
}

TEST(Mean, DividesByTheCountKnownOrNot) {
  const Tensor value = Tensor::from<double>({1, 2, 3, 6}, Extents{2, 2});
  const Variable x = input({2, 2}), u = input({kUnknown, 2});
  EXPECT_EQ(run(ops::mean(x), x, value), (V{3}));
  EXPECT_EQ(run(ops::mean(x, {Axes{1}, true}), x, value), (V{1.5, 4.5}));
  EXPECT_EQ(run(ops::mean(u, {Axes{0}, false}), u, value), (V{2, 4}));
  const Variable i = input({2}, DType::int32);
  EXPECT_EQ(ops::mean(i).dtype(), DType::float64);
  EXPECT_EQ(run(ops::mean(i), i, Tensor::from<std::int32_t>({1, 2})), (V{1.5}));
}

TEST(Reduce, MaxOfNothingIsRefused) {
  expect_error<ValueError>(
      [] {
        ops::max(input({2, 0}), {Axes{1}, false});
      },
      "[max] axis 1: got no elements in (2, 0)");
  const Variable y = ops::min(input({kUnknown}));
  expect_error<ValueError>(
      [&] { y.owner().op().infer_shapes(y.owner(), std::vector<Extents>{{0}}); },
      "[min] axis 0: got no elements");
  EXPECT_EQ(ops::max(input({2, 0}), {Axes{0}, false}).type().shape, (Extents{0}));
}

TEST(Reduce, WrongAxesAndDTypesAreRefused) {
  expect_error<ShapeError>(
      [] {
        ops::sum(input({2}), {Axes{1}, false});
      },
      "[sum] axis out of range");
  expect_error<ShapeError>([] { ops::sum(input({2, 2}), {Axes{0, -2}, false}); }, "repeated axis");
  expect_error<DTypeError>([] { ops::max(input({2}, DType::complex64)); }, "complex64");
}

TEST(Reduce, ElementsThatAttainTheMaximumShareItsCotangent) {
  const Variable x = input({4}), y = ops::max(x), w = input({});
  const Variable g = pullback({&y, 1}, {&x, 1}, {&w, 1})[0];
  const Tensor value = Tensor::from<double>({1, 3, 3, 2});
  EXPECT_EQ(evaluate(g, {{x, value}, {w, Tensor::scalar(4.0)}}).to_vector<double>(),
            (V{0, 2, 2, 0}));
}

// In braces, as a number, as a list: all spellings compile.
TEST(Reduce, AxesAreWrittenInAnyWay) {
  const Variable x = make_input({DType::float64, {2, 3, 4}, {}}, "x");
  EXPECT_EQ(ops::max(x, {.axes = {0}}).type().shape, (Extents{3, 4}));
  EXPECT_EQ(ops::max(x, {.axes = 0}).type().shape, (Extents{3, 4}));
  EXPECT_EQ(ops::max(x, {{0}}).type().shape, (Extents{3, 4}));
  EXPECT_EQ(ops::sum(x, {{0, 2}}).type().shape, Extents{3});
  EXPECT_EQ(ops::sum(x, {.axes = {0, -1}, .keepdims = true}).type().shape, (Extents{1, 3, 1}));
  EXPECT_EQ(ops::sum(x, {Axes{1}, true}).type().shape, (Extents{2, 1, 4}));
  EXPECT_EQ(ops::var(x, {.axes = {1, 2}, .ddof = 1}).type().shape, Extents{2});
  EXPECT_EQ(ops::norm(x, {.axes = 2, .order = 1}).type().shape, (Extents{2, 3}));
  EXPECT_EQ(ops::sum(x, {.axes = Axes{}}).type().shape, (Extents{2, 3, 4}));
}
// Two numbers are not an axis and a flag.
template <class T>
concept TakesTwoNumbers = requires(Variable x, T options) {
  ops::sum(x, T{0, 1});
};
static_assert(!TakesTwoNumbers<ops::ReduceOptions>);

}  // namespace
}  // namespace palimpsest
