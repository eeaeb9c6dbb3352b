// SPDX-License-Identifier: Apache-2.0
// Builders and operators: values, dtypes and the rules for integers.
#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using C = std::complex<double>;
using V = std::vector<double>;
using I = std::vector<int>;

struct Operators : ::testing::Test {
  Variable x = make_input({DType::float64, {4}, {}}, "x");
  Variable y = make_input({DType::float64, {4}, {}}, "y");
  Variable n = make_input({DType::int32, {4}, {}}, "n");
  Variable m = make_input({DType::int32, {4}, {}}, "m");
  Variable p = make_input({DType::bool_, {4}, {}}, "p");
  Variable q = make_input({DType::bool_, {4}, {}}, "q");
  testing::Bindings bindings{{x, Tensor::from<double>({-1.5, 0, 2.5, 4})},
                             {y, Tensor::from<double>({2, 1, 2.5, -3})},
                             {n, Tensor::from<std::int32_t>({7, -7, 5, 0})},
                             {m, Tensor::from<std::int32_t>({2, 2, 0, 0})},
                             {p, Tensor::from<bool>({true, true, false, false})},
                             {q, Tensor::from<bool>({true, false, true, false})}};
  template <class T = double>
  std::vector<T> of(const Variable& v) const {
    return evaluate(v, bindings).to_vector<T>();
  }
};

TEST_F(Operators, Compare) {
  EXPECT_EQ((x < y).dtype(), DType::bool_);
  EXPECT_EQ(of<int>(x < y), (I{1, 1, 0, 0}));
  EXPECT_EQ(of<int>(x <= y), (I{1, 1, 1, 0}));
  EXPECT_EQ(of<int>(x > y), (I{0, 0, 0, 1}));
  EXPECT_EQ(of<int>(x >= 2.5), (I{0, 0, 1, 1}));
  EXPECT_EQ(of<int>(0 < x), (I{0, 0, 1, 1}));
  EXPECT_EQ(of<int>(ops::eq(x, y)), (I{0, 0, 1, 0}));
  EXPECT_EQ(of<int>(ops::ne(x, 0)), (I{1, 0, 1, 1}));
}

TEST_F(Operators, DivideWithFloorAndRemainder) {
  EXPECT_EQ(of(x % y), (V{0.5, 0, 0, -2}));
  EXPECT_EQ(of<int>(n % 3), (I{1, 2, 2, 0}));
  EXPECT_EQ((n % 3).dtype(), DType::int32);
  EXPECT_EQ(of<int>(ops::floor_div(n, 2)), (I{3, -4, 2, 0}));
  EXPECT_EQ(of<int>(ops::floor_div(n, m)), (I{3, -4, 0, 0}));
  EXPECT_EQ(of<int>(n % m), (I{1, 1, 0, 0}));
  EXPECT_EQ((n / m).dtype(), DType::float64);
  EXPECT_EQ(of(n / 2), (V{3.5, -3.5, 2.5, 0}));
}

TEST_F(Operators, IntegersWrap) {
  constexpr auto kLowest = std::numeric_limits<std::int32_t>::min();
  const Variable low = constant(Tensor::scalar<std::int32_t>(kLowest));
  EXPECT_EQ(evaluate(low - 1).item<std::int32_t>(), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(evaluate(-low).item<std::int32_t>(), kLowest);
  EXPECT_EQ(evaluate(ops::floor_div(low, -1)).item<std::int32_t>(), kLowest);
  const Variable big = constant(Tensor::from<double>({300, -1, 1e30, NAN}));
  EXPECT_EQ(evaluate(ops::astype(big, DType::uint8)).to_vector<int>(), (I{44, 255, 0, 0}));
}

TEST_F(Operators, WorkOnBits) {
  EXPECT_EQ(of<int>(p & q), (I{1, 0, 0, 0}));
  EXPECT_EQ(of<int>(p | q), (I{1, 1, 1, 0}));
  EXPECT_EQ(of<int>(p ^ q), (I{0, 1, 1, 0}));
  EXPECT_EQ(of<int>(~p), (I{0, 0, 1, 1}));
  EXPECT_EQ(of<int>(n & 3), (I{3, 1, 1, 0}));
  EXPECT_EQ(of<int>(~n), (I{-8, 6, -6, -1}));
  EXPECT_EQ(of<int>(ops::logical_and(n, x)), (I{1, 0, 1, 0}));
  EXPECT_EQ(of<int>(ops::logical_or(n, x)), (I{1, 1, 1, 1}));
  EXPECT_EQ(of<int>(ops::logical_xor(n, x)), (I{0, 1, 0, 1}));
  EXPECT_EQ(of<int>(ops::logical_not(x)), (I{0, 1, 0, 0}));
  expect_error<DTypeError>([&] { x& y; }, "[bitwise_and]");
  expect_error<DTypeError>([&] { ~x; }, "[bitwise_not]");
}

TEST_F(Operators, RebindAndLeaveTheOldVariableAlone) {
  Variable v = x;
  v = v + y;
  EXPECT_FALSE(v == x);
  EXPECT_EQ(of(x)[0], -1.5);
}

TEST_F(Operators, BuildersTakeWeakNumbers) {
  const Variable f = make_input({DType::float32, {4}, {}});
  EXPECT_EQ(ops::maximum(f, 0.5).dtype(), DType::float32);
  EXPECT_EQ(ops::pow(f, 2).dtype(), DType::float32);
  EXPECT_EQ(ops::pow(n, 2).dtype(), DType::int32);
  EXPECT_EQ(ops::pow(n, 2.0).dtype(), DType::float64);
  EXPECT_EQ(ops::where(p, f, 0).dtype(), DType::float32);
  EXPECT_EQ(ops::where(p, 1, 0).dtype(), DType::int64);
  EXPECT_EQ(ops::where(p, 1, 0.5).dtype(), DType::float64);
  EXPECT_EQ(ops::complex(f, 0).dtype(), DType::complex64);
  EXPECT_EQ(ops::fma(f, 2, n).dtype(), DType::float64);
  EXPECT_EQ(of(ops::where(p, x, -1)), (V{-1.5, 0, -1, -1}));
  EXPECT_EQ(of(ops::clip(x, 0, 3)), (V{0, 0, 2.5, 3}));
  EXPECT_EQ(of<int>(ops::clip(n, -2, 6)), (I{6, -2, 5, 0}));
  EXPECT_EQ(of(ops::maximum(1, x)), (V{1, 1, 2.5, 4}));
  EXPECT_EQ(of(ops::fma(x, 2, y)), (V{-1, 1, 7.5, 5}));
  expect_error<OverflowError>([&] { ops::maximum(n, index_t{1} << 40); }, "fits int32");
}

TEST_F(Operators, RoundAndSign) {
  EXPECT_EQ(of(ops::round(x)), (V{-2, 0, 2, 4}));
  EXPECT_EQ(of(ops::sign(x)), (V{-1, 0, 1, 1}));
  EXPECT_EQ(of<int>(ops::sign(n)), (I{1, -1, 1, 0}));
  const Variable special = constant(Tensor::from<double>({NAN, INFINITY, 1}));
  EXPECT_EQ(evaluate(ops::isnan(special)).to_vector<int>(), (I{1, 0, 0}));
  EXPECT_EQ(evaluate(ops::isinf(special)).to_vector<int>(), (I{0, 1, 0}));
  EXPECT_EQ(evaluate(ops::isfinite(special)).to_vector<int>(), (I{0, 0, 1}));
  EXPECT_TRUE(std::isnan(evaluate(ops::clip(special, 0, 2)).to_vector<double>()[0]));
}

TEST_F(Operators, FunctionsUndoTheirInverses) {
  const Variable z = constant(std::vector<C>{C(0.3, 0.2), C(-0.4, 0.1)});
  const auto back = [&](const Variable& v) {
    return testing::distance(evaluate(v), z.constant_value());
  };
  EXPECT_LE(back(ops::log(ops::exp(z))), 1e-14);
  EXPECT_LE(back(ops::log1p(ops::expm1(z))), 1e-14);
  EXPECT_LE(back(ops::log2(ops::pow(2, z))), 1e-14);
  EXPECT_LE(back(ops::log10(ops::pow(10, z))), 1e-14);
  EXPECT_LE(back(ops::sin(ops::arcsin(z))), 1e-14);
  EXPECT_LE(back(ops::cos(ops::arccos(z))), 1e-14);
  EXPECT_LE(back(ops::tan(ops::arctan(z))), 1e-14);
  EXPECT_LE(back(ops::sinh(ops::arcsinh(z))), 1e-14);
  EXPECT_LE(back(ops::cosh(ops::arccosh(z))), 1e-14);
  EXPECT_LE(back(ops::tanh(ops::arctanh(z))), 1e-14);
  const Variable half = constant(V{0.5, 0.25});
  EXPECT_LE(testing::distance(evaluate(ops::atan2(ops::sin(half), ops::cos(half))),
                              half.constant_value()),
            1e-15);
  EXPECT_EQ(evaluate(ops::hypot(constant(3.0), 4)).item<double>(), 5);
  EXPECT_EQ(evaluate(ops::sigmoid(constant(0.0))).item<double>(), 0.5);
  EXPECT_NEAR(evaluate(ops::erf(constant(0.5))).item<double>(), std::erf(0.5), 1e-16);
  EXPECT_NEAR(evaluate(ops::sinc(half)).to_vector<double>()[0], 2 / M_PI, 1e-15);
  EXPECT_NEAR(evaluate(ops::angle(constant(C(-1, 0)))).item<double>(), M_PI, 1e-15);
}

TEST_F(Operators, CastLikeTakesTheOthersDType) {
  EXPECT_EQ(ops::cast_like(x, n).dtype(), DType::int32);
  const Variable z = ops::complex(x, y);
  expect_error<DTypeError>([&] { ops::cast_like(z, x); }, "Try real, imag or abs");
}

TEST(ComplexViews, ShowPairsAndAreViewsBothWays) {
  const Variable z = make_input({DType::complex128, {kUnknown}, {}});
  const Variable pairs = ops::view_as_real(z);
  EXPECT_EQ(pairs.type().str(), "float64 (?, 2)");
  EXPECT_EQ(pairs.owner().op().view_map(pairs.owner()), (AliasMap{{0, {0}}}));
  const Tensor value = Tensor::from<C>({C(1, 2), C(3, 4)});
  EXPECT_EQ(evaluate(pairs, {{z, value}}).to_vector<double>(), (V{1, 2, 3, 4}));
  const Variable back = ops::view_as_complex(pairs);
  EXPECT_TRUE(equal(evaluate(back, {{z, value}}), value));
  const Variable x = make_input({DType::float32, {2, 3}, {}});
  expect_error<DTypeError>([&] { ops::view_as_real(x); }, "[view_as_real] got float32 (2, 3)");
  expect_error<ShapeError>([&] { ops::view_as_complex(x); }, "last extent: got (2, 3), expected 2");
  expect_error<DTypeError>([&] { ops::view_as_complex(z); }, "expected float32 or float64");
  // Odd strides do not allow a view as pairs.
  const Apply node = ops::view_as_complex(make_input({DType::float64, {2, 2}, {}})).owner();
  const Layout odd{DType::float64, {2, 2}, {3, 1}, 0};
  EXPECT_FALSE(node.op().view_layout(node, 0, odd).has_value());
  const Layout even{DType::float64, {2, 2}, {4, 1}, 16};
  EXPECT_EQ(node.op().view_layout(node, 0, even), (Layout{DType::complex128, {2}, {2}, 16}));
}

}  // namespace
}  // namespace palimpsest
