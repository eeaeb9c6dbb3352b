// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create/create.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using V = std::vector<double>;
using I = std::vector<int>;

TEST(Create, FullZerosAndOnesHaveTheirExtentsAndValues) {
  EXPECT_EQ(evaluate(ops::full({2, 2}, 3)).to_vector<int>(), (I{3, 3, 3, 3}));
  EXPECT_EQ(ops::full({2}, 3).dtype(), DType::int64);
  EXPECT_EQ(ops::full({2}, 3.0).dtype(), DType::float64);
  EXPECT_EQ(evaluate(ops::zeros({0, 2}, DType::complex64)).shape(), (Extents{0, 2}));
  EXPECT_EQ(evaluate(ops::ones({2}, DType::int8)).to_vector<int>(), (I{1, 1}));
  EXPECT_EQ(ops::empty({2, 3}, DType::int8).type().str(), "int8 (2, 3)");
  EXPECT_EQ(ops::zeros({}).type().str(), "float64 ()");
}

TEST(Create, LikeAnotherArrayKnownOrNot) {
  const Variable x = make_input({DType::complex64, {kUnknown, 2}, {}});
  const Tensor value = Tensor::ones({3, 2}, DType::complex64);
  const testing::Bindings bindings{{x, value}};
  EXPECT_TRUE(
      equal(evaluate(ops::zeros_like(x), bindings), Tensor::zeros({3, 2}, DType::complex64)));
  EXPECT_TRUE(equal(evaluate(ops::ones_like(x), bindings), value));
  EXPECT_EQ(evaluate(ops::full_like(x, 2.5), bindings).dtype(), DType::complex64);
  EXPECT_EQ(ops::empty_like(x).type(), x.type());
  const Variable n = ivector("n");
  const Tensor sevens = evaluate(ops::full_like(n, 7), {{n, Tensor::zeros({2}, DType::int32)}});
  EXPECT_EQ(sevens.to_vector<int>(), (std::vector<int>{7, 7}));
}

TEST(Create, ExtentsAreComputedFromExtents) {
  const Variable x = dmatrix("x"), y = dvector("y");
  const Variable z = ops::alloc(1.5, {x.shape(0) * 2 + 1, y.shape(0), 3});
  EXPECT_EQ(z.type().str(), "float64 (?, ?, 3)");
  const testing::Bindings bindings{{x, Tensor::zeros({2, 7})}, {y, Tensor::zeros({4})}};
  EXPECT_EQ(evaluate(z, bindings).shape(), (Extents{5, 4, 3}));
  const auto extent = [&](const Operand& e) {
    return evaluate(ops::zeros({e}), bindings).shape(0);
  };
  EXPECT_EQ(extent(ops::floor_div(x.shape(1), 2)), 3);
  EXPECT_EQ(extent(ops::floor_div(-x.shape(1), 2) + 10), 6);
  EXPECT_EQ(extent(x.shape(1) % 4), 3);
  EXPECT_EQ(extent(ops::minimum(x.shape(1), y.shape(0))), 4);
  EXPECT_EQ(extent(ops::maximum(x.shape(1), y.shape(0)) - 1), 6);
  EXPECT_EQ(extent(ops::index(x.shape(), {index_t{-1}})), 7);
  EXPECT_EQ(extent(ops::astype(x.shape(0), DType::int32)), 2);
  EXPECT_EQ(extent(constant(5)), 5);
  // Known extents fold: equal extents give equal ops.
  const Variable known = make_input({DType::float64, {2, 3}, {}});
  EXPECT_EQ(ops::zeros({known.shape(1) * 2}).owner().op(), ops::zeros({6}).owner().op());
}

TEST(Create, ExtentsMayNeedMoreThanExtents) {
  const Variable n = lscalar("n"), v = lvector("v"), x = dvector("x");
  const Tensor three = Tensor::scalar<index_t>(3);
  const Variable z = ops::zeros({n, n * 2 - x.shape(0), 2});
  EXPECT_EQ(z.type().shape, (Extents{kUnknown, kUnknown, 2}));
  EXPECT_EQ(evaluate(z, {{n, three}, {x, Tensor::zeros({5})}}).shape(), (Extents{3, 1, 2}));
  const Tensor list = Tensor::from<index_t>({1, 1});
  EXPECT_EQ(evaluate(ops::arange(ops::sum(v)), {{v, list}}).to_vector<int>(), (I{0, 1}));
  EXPECT_EQ(evaluate(ops::eye(n, Operand(4 - n)), {{n, three}}).shape(), (Extents{3, 1}));
  // For an expression the final value counts, not its parts.
  EXPECT_EQ(evaluate(ops::ones({2 - n}), {{n, Tensor::scalar<index_t>(-1)}}).shape(), Extents{3});
  expect_error<ShapeError>(
      [&] {
        evaluate(ops::zeros({n - 5}), {{n, three}});
      },
      "[extent] got -2, expected no negative number");
}

TEST(Create, WrongExtentsAreRefused) {
  const Variable x = dvector("x");
  expect_error<DTypeError>([&] { ops::zeros({2.5}); }, "a number that is not an integer");
  expect_error<DTypeError>([&] { ops::zeros({x}); }, "expected an integer of no axes");
  expect_error<ShapeError>([] { ops::zeros({2, -1}); }, "[alloc] extent 1: got -1");
  const Variable negative = ops::zeros({x.shape(0) - 3});
  expect_error<ShapeError>(
      [&] {
        evaluate(negative, {{x, Tensor::zeros({2})}});
      },
      "extent 0: got -1, expected none negative");
  expect_error<OverflowError>([] { ops::zeros({index_t{1} << 40, index_t{1} << 40}); }, "");
}

TEST(Create, AValueBroadcasts) {
  const Variable v = dvector("v"), row = make_input({DType::float64, {1}, {}});
  const Variable wide = ops::alloc(v, {2, v.shape(0)});
  EXPECT_EQ(evaluate(wide, {{v, Tensor::from<double>({1, 2})}}).to_vector<double>(),
            (V{1, 2, 1, 2}));
  EXPECT_EQ(evaluate(ops::alloc(row, {2, 2}), {{row, Tensor::ones({1})}}).to_vector<double>(),
            (V{1, 1, 1, 1}));
  const Variable two = constant(V{1, 2});
  expect_error<ShapeError>([&] { ops::full({2}, two); },
                           "[full] value: got float64 (2,), expected one of no axes. Try alloc");
  expect_error<ShapeError>([&] { ops::full_like(v, two); }, "[full_like] value");
  expect_error<ShapeError>([&] { ops::alloc(two, {}); }, "[alloc] number of axes of the value");
  expect_error<ShapeError>([&] { ops::alloc(two, {3}); }, "[alloc] axis 0: got a value");
  const Variable unknown = ops::alloc(v, {2});
  expect_error<ShapeError>(
      [&] {
        evaluate(unknown, {{v, Tensor::ones({1})}});
      },
      "or specify_shape for a computed value");
  // The gradient of a sum over a filled array counts the elements.
  EXPECT_EQ(
      evaluate(grad(ops::sum(wide), v), {{v, Tensor::from<double>({1, 2})}}).to_vector<double>(),
      (V{2, 2}));
}

TEST(Create, Ranges) {
  EXPECT_EQ(evaluate(ops::arange(4)).to_vector<int>(), (I{0, 1, 2, 3}));
  EXPECT_EQ(ops::arange(4).dtype(), DType::int64);
  EXPECT_EQ(evaluate(ops::arange(5, 0, -2)).to_vector<int>(), (I{5, 3, 1}));
  EXPECT_EQ(evaluate(ops::arange(0, -3)).shape(0), 0);
  EXPECT_EQ(evaluate(ops::arange(0, 1, 0.25)).to_vector<double>(), (V{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(ops::arange(0, 3, 1, DType::float32).dtype(), DType::float32);
  EXPECT_EQ(evaluate(ops::arange(1.5e300, 2e300, 1e300)).to_vector<double>(), (V{1.5e300}));
  // Integers that double precision cannot hold.
  constexpr index_t kBig = (index_t{1} << 60) + 1;
  EXPECT_EQ(evaluate(ops::arange(kBig, kBig + 3)).to_vector<index_t>(),
            (std::vector<index_t>{kBig, kBig + 1, kBig + 2}));
  constexpr index_t kLeast = std::numeric_limits<index_t>::min();
  constexpr index_t kMost = std::numeric_limits<index_t>::max();
  EXPECT_EQ(evaluate(ops::arange(kLeast, kMost, kMost)).to_vector<index_t>(),
            (std::vector<index_t>{kLeast, -1, kMost - 1}));
  EXPECT_EQ(evaluate(ops::arange(kMost, kLeast, kLeast)).to_vector<index_t>(),
            (std::vector<index_t>{kMost, -1}));
  const Variable x = dmatrix("x");
  EXPECT_EQ(evaluate(ops::arange(x.shape(1)), {{x, Tensor::zeros({2, 3})}}).to_vector<int>(),
            (I{0, 1, 2}));
  EXPECT_EQ(evaluate(ops::linspace(0, 1, 4)).to_vector<double>().back(), 1);
  EXPECT_EQ(evaluate(ops::linspace(3, 5, 1)).to_vector<double>(), (V{3}));
  EXPECT_EQ(evaluate(ops::linspace(0, 1, 0)).shape(0), 0);
  expect_error<ValueError>([] { ops::arange(0, 3, 0); }, "[arange] step: got 0");
  expect_error<OverflowError>([] { ops::arange(kLeast, kMost); },
                              "[arange] number of elements: got 18446744073709551615");
  expect_error<OverflowError>([] { ops::arange(1e300, 3e300, 1e300, DType::int64); },
                              "[arange] got 1e+300, expected a number of int64");
  expect_error<DTypeError>([] { ops::arange(std::complex<double>(0, 1), 3); },
                           "[arange] got complex");
  expect_error<OverflowError>([] { ops::arange(0, 1e300, 1); }, "[arange] number of elements");
  expect_error<DTypeError>([] { ops::linspace(0, 1, 3, DType::int32); }, "[linspace] got int32");
}

TEST(Create, Eye) {
  EXPECT_EQ(evaluate(ops::eye(2)).to_vector<double>(), (V{1, 0, 0, 1}));
  EXPECT_EQ(evaluate(ops::eye(2, 3, 1, DType::int8)).to_vector<int>(), (I{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(evaluate(ops::eye(2, 2, -1)).to_vector<double>(), (V{0, 0, 1, 0}));
  const Variable x = dvector("x");
  EXPECT_EQ(evaluate(ops::eye(x.shape(0)), {{x, Tensor::zeros({3})}}).shape(), (Extents{3, 3}));
}

TEST(Create, ShapesAsValues) {
  const Variable x = make_input({DType::int8, {kUnknown, 3}, {}});
  const testing::Bindings bindings{{x, Tensor::zeros({2, 3}, DType::int8)}};
  EXPECT_EQ(evaluate(x.shape(), bindings).to_vector<int>(), (I{2, 3}));
  EXPECT_EQ(evaluate(x.shape(0), bindings).item<int>(), 2);
  EXPECT_TRUE(x.shape(1).is_constant());
  EXPECT_TRUE(x.shape(-1).is_constant());
  EXPECT_TRUE(make_input({DType::int8, {2, 3}, {}}).shape().is_constant());
  expect_error<ShapeError>([&] { x.shape(2); }, "[shape]");
}

}  // namespace
}  // namespace palimpsest
