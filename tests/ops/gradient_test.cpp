// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/gradient.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::evaluate;
using testing::expect_error;
using C = std::complex<double>;
using V = std::vector<double>;

Variable input(DType dtype, Extents shape, const char* name = "x") {
  return make_input({dtype, std::move(shape), {}}, name);
}

TEST(Grad, OfAbs2AndOfTheRealPartFollowTheConvention) {
  const Variable z = input(DType::complex128, {2});
  const Tensor value = Tensor::from<C>({C(1, 2), C(-3, 4)});
  const auto gradient = [&](const Variable& cost) {
    return evaluate(grad(cost, z), {{z, value}}).to_vector<C>();
  };
  EXPECT_EQ(gradient(ops::sum(ops::abs2(z))), (std::vector<C>{C(2, 4), C(-6, 8)}));
  EXPECT_EQ(gradient(ops::sum(ops::real(z))), (std::vector<C>{1, 1}));
  EXPECT_EQ(gradient(ops::sum(ops::imag(z))), (std::vector<C>{C(0, 1), C(0, 1)}));
}

TEST(Grad, TakesARealScalarOnly) {
  const Variable x = input(DType::float64, {2}), z = input(DType::complex128, {});
  expect_error<TypeError>([&] { grad(x, x); }, "[grad] cost x: got float64 (2,), expected a real");
  expect_error<TypeError>([&] { grad(z, z); }, "abs2 of a complex number");
  const Variable n = input(DType::int64, {});
  expect_error<TypeError>([&] { grad(n, n); }, "expected a real scalar");
  expect_error<ValueError>([&] { grad(Variable(), x); }, "neither a cost nor known gradients");
}

TEST(Grad, OfWhatTheCostDoesNotDependOnIsAsAsked) {
  const Variable x = input(DType::float64, {2}), y = input(DType::float64, {kUnknown}, "other");
  const Variable cost = ops::sum(x * x);
  expect_error<DisconnectedError>([&] { grad(cost, y); },
                                  "[grad] the cost does not depend on other");
  EXPECT_FALSE(grad(cost, y, {.disconnected = Disconnected::none}).defined());
  const Variable zero = grad(cost, y, {.disconnected = Disconnected::zero});
  EXPECT_EQ(evaluate(zero, {{y, Tensor::ones({3})}}).to_vector<double>(), (V{0, 0, 0}));
  // Its extents are used, its elements are not.
  const Variable mean = ops::mean(ops::zeros_like(y)) + cost;
  expect_error<DisconnectedError>([&] { grad(mean, y); }, "does not depend");
}

TEST(Grad, OfIntegersIsZero) {
  const Variable n = input(DType::int32, {2});
  const Variable cost = ops::sum(ops::exp(n));
  const Variable g = grad(cost, n);
  EXPECT_EQ(g.dtype(), DType::int32);
  EXPECT_EQ(evaluate(g).to_vector<int>(), (std::vector<int>{0, 0}));
}

TEST(Grad, ThroughACastToIntegersIsZero) {
  const Variable x = input(DType::float64, {2});
  const Variable cost = ops::sum(ops::astype(ops::astype(x, DType::int32), DType::float64));
  EXPECT_EQ(evaluate(grad(cost, x)).to_vector<double>(), (V{0, 0}));
}

TEST(Grad, DoesNotFlowThroughConstants) {
  const Variable x = input(DType::float64, {2});
  const Variable square = x * x;
  const Variable cost = ops::sum(square * x);
  const Tensor value = Tensor::from<double>({2, 3});
  const Variable g = grad(cost, x, {.consider_constant = {square}});
  EXPECT_EQ(evaluate(g, {{x, value}}).to_vector<double>(), (V{4, 9}));
  EXPECT_EQ(
      evaluate(grad(ops::sum(ops::stop_gradient(square) * x), x), {{x, value}}).to_vector<double>(),
      (V{4, 9}));
  expect_error<DisconnectedError>(
      [&] {
        grad(cost, x, {.consider_constant = {square, x}});
      },
      "does not depend on x");
}

TEST(Grad, StopGradientLeavesZeros) {
  const Variable x = input(DType::float64, {2});
  EXPECT_EQ(evaluate(grad(ops::sum(ops::stop_gradient(x)), x)).to_vector<double>(), (V{0, 0}));
}

TEST(Grad, KnownGradientsReplaceWhatWouldArrive) {
  const Variable x = input(DType::float64, {2});
  const Variable y = x * x, cost = ops::sum(y * 100);
  const Variable known = constant(std::vector<double>{1, 10});
  const Tensor value = Tensor::from<double>({2, 3});
  const Variable with_cost = grad(cost, x, {.known_grads = {{y, known}}});
  EXPECT_EQ(evaluate(with_cost, {{x, value}}).to_vector<double>(), (V{4, 60}));
  const Variable alone = grad(Variable(), x, {.known_grads = {{y, known}}});
  EXPECT_EQ(evaluate(alone, {{x, value}}).to_vector<double>(), (V{4, 60}));
  expect_error<ShapeError>(
      [&] {
        grad(cost, x, {.known_grads = {{y, constant(std::vector<double>{1})}}});
      },
      "[grad] known gradient");
}

TEST(Grad, OfSeveralVariablesInOneSweep) {
  const Variable x = input(DType::float64, {}), y = input(DType::float64, {}, "y");
  const std::vector<Variable> g = grad(x * y + ops::sin(x), {x, y});
  const testing::Bindings bindings{{x, Tensor::scalar(2.0)}, {y, Tensor::scalar(3.0)}};
  EXPECT_DOUBLE_EQ(evaluate(g[0], bindings).item<double>(), 3 + std::cos(2.0));
  EXPECT_DOUBLE_EQ(evaluate(g[1], bindings).item<double>(), 2);
}

TEST(Grad, SecondDerivativesToo) {
  const Variable x = input(DType::float64, {});
  const Variable second = grad(grad(ops::exp(x * x), x), x);
  const double at = 0.5, e = std::exp(at * at);
  EXPECT_NEAR(evaluate(second, {{x, Tensor::scalar(at)}}).item<double>(), (2 + 4 * at * at) * e,
              1e-12);
}

TEST(Grad, OfALongChainNeedsNoStack) {
  const Variable x = input(DType::float64, {});
  Variable y = x;
  for (int i = 0; i < 20000; ++i) y = y * 1.0;
  EXPECT_TRUE(grad(y, x).defined());
  EXPECT_TRUE(pushforward({&y, 1}, {&x, 1}, {&x, 1})[0].defined());
}

TEST(Grad, OfNoSuchDerivativeSaysSoOnlyWhereItIsNeeded) {
  const Variable x = input(DType::float64, {3}), y = input(DType::float64, {3}, "y");
  const Variable product = ops::prod(y);
  EXPECT_TRUE(grad(ops::sum(x) * ops::stop_gradient(product), x).defined());
}

TEST(Grad, AtPointsWhereAFormulaIsZeroTimesInfinity) {
  const Variable x = input(DType::float64, {3}), n = input(DType::int32, {3}, "n");
  const Tensor value = Tensor::from<double>({0, 0, 2});
  const Variable cost = ops::sum(ops::pow(x, n));
  const Tensor exponents = Tensor::from<std::int32_t>({0, 2, 3});
  EXPECT_EQ(evaluate(grad(cost, x), {{x, value}, {n, exponents}}).to_vector<double>(),
            (V{0, 0, 12}));
  const Variable e = input(DType::float64, {3}, "e");
  const Tensor two = Tensor::from<double>({2, 2, 2});
  const V slopes =
      evaluate(grad(ops::sum(ops::pow(x, e)), e), {{x, value}, {e, two}}).to_vector<double>();
  EXPECT_EQ(slopes[0], 0);
  EXPECT_DOUBLE_EQ(slopes[2], 4 * std::log(2.0));
  EXPECT_EQ(evaluate(grad(ops::sum(ops::sinc(x)), x), {{x, value}}).to_vector<double>()[0], 0);
  const Variable z = input(DType::complex128, {1}, "z");
  const Variable direction = ops::sum(ops::real(ops::sign(z)));
  EXPECT_EQ(evaluate(grad(direction, z), {{z, Tensor::from<C>({C(0, 0)})}}).to_vector<C>()[0],
            C(0, 0));
}

TEST(Grad, OfSincIsSmoothWhereTheSeriesMeetsTheFormula) {
  for (const DType dtype : {DType::float64, DType::float32}) {
    const Variable x = input(dtype, {2});
    const double border = dtype == DType::float64 ? 0.01 : 0.1;
    const Tensor value = Tensor::from<double>({border * 0.999999, border * 1.000001}).to(dtype);
    const V slopes = evaluate(grad(ops::sum(ops::sinc(x)), x), {{x, value}}).to_vector<double>();
    const double tolerance = dtype == DType::float64 ? 1e-6 : 1e-4;
    const V x_values = value.to(DType::float64).to_vector<double>();
    EXPECT_NEAR(slopes[0] / x_values[0] / (slopes[1] / x_values[1]), 1, tolerance);
  }
}

TEST(Grad, OfClipGoesToWhatTheResultIs) {
  const Variable x = input(DType::float64, {4}), low = input(DType::float64, {}, "low"),
                 high = input(DType::float64, {}, "high");
  const Variable cost = ops::sum(ops::clip(x, low, high) * constant(V{1, 10, 100, 1000}));
  const std::vector<Variable> g = grad(cost, {x, low, high});
  const testing::Bindings bindings{{x, Tensor::from<double>({-5, 0, 1, 7})},
                                   {low, Tensor::scalar(-1.0)},
                                   {high, Tensor::scalar(2.0)}};
  EXPECT_EQ(evaluate(g[0], bindings).to_vector<double>(), (V{0, 10, 100, 0}));
  EXPECT_EQ(evaluate(g[1], bindings).item<double>(), 1);
  EXPECT_EQ(evaluate(g[2], bindings).item<double>(), 1000);
}

TEST(Pushforward, IsTheDirectionalDerivative) {
  const Variable x = input(DType::float64, {}), y = input(DType::float64, {}, "y");
  const Variable dx = input(DType::float64, {}, "dx"), dy = input(DType::float64, {}, "dy");
  const Variable f = x * x * y + ops::exp(y);
  const Variable wrt[] = {x, y}, tangents[] = {dx, dy};
  const Variable df = pushforward({&f, 1}, wrt, tangents)[0];
  const double value = evaluate(df, {{x, Tensor::scalar(2.0)},
                                     {y, Tensor::scalar(3.0)},
                                     {dx, Tensor::scalar(0.5)},
                                     {dy, Tensor::scalar(-1.0)}})
                           .item<double>();
  EXPECT_DOUBLE_EQ(value, 2 * 2 * 3 * 0.5 - (4 + std::exp(3.0)));
}

TEST(Pushforward, OfWhatHasNoTangentIsZero) {
  const Variable x = input(DType::float64, {2}), y = input(DType::float64, {2}, "y");
  const Variable outs[] = {y * 2, x + y, ops::stop_gradient(x)}, none;
  const Variable dx = constant(V{1, 2});
  const std::vector<Variable> result = pushforward(outs, {&x, 1}, {&dx, 1});
  EXPECT_EQ(evaluate(result[0]).to_vector<double>(), (V{0, 0}));
  EXPECT_EQ(evaluate(result[1], {{y, Tensor::ones({2})}}).to_vector<double>(), (V{1, 2}));
  EXPECT_EQ(evaluate(result[2]).to_vector<double>(), (V{0, 0}));
  EXPECT_EQ(evaluate(pushforward(outs, {&x, 1}, {&none, 1})[1]).to_vector<double>(), (V{0, 0}));
  expect_error<ValueError>(
      [&] {
        pushforward(outs, {&x, 1}, {});
      },
      "[pushforward] number of tangents: got 0, expected 1");
  const Variable wide = constant(V{1, 2, 3});
  expect_error<ShapeError>(
      [&] {
        pushforward(outs, {&x, 1}, {&wide, 1});
      },
      "[pushforward] tangent of x");
}

}  // namespace
}  // namespace palimpsest
