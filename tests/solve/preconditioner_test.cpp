// SPDX-License-Identifier: Apache-2.0
// Polynomials of an operator as approximations of its inverse.
#include "palimpsest/solve/preconditioner.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Values = std::vector<double>;

void expect_near(const Values& got, const Values& expected, double bound) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], bound) << i;
}

double value_at(const Values& c, double x) {
  double sum = 0;
  for (std::size_t j = c.size(); j-- > 0;) sum = sum * x + c[j];
  return sum;
}

// The integral of (1 - x p(x))^2 from lower to upper, by many midpoints.
double squared_error(const Values& c, double lower, double upper) {
  constexpr int kPoints = 20000;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = lower + (upper - lower) * (i + 0.5) / kPoints;
    const double error = 1 - x * value_at(c, x);
    sum += error * error;
  }
  return sum * (upper - lower) / kPoints;
}

TEST(PolynomialPreconditioner, CoefficientsAreThoseKnown) {
  expect_near(polynomial_coefficients(0), {1.5}, 1e-14);
  expect_near(polynomial_coefficients(1), {4, -10.0 / 3}, 1e-13);
  const PolynomialOptions linf{.norm = PolynomialNorm::linf, .lower = 0.1};
  expect_near(polynomial_coefficients(0, linf), {20.0 / 11}, 1e-14);
  expect_near(polynomial_coefficients(1, linf), {5.46584, -4.96894}, 5e-6);
  expect_near(polynomial_coefficients(1, {.norm = PolynomialNorm::ifista}), {2, -1}, 0);
  // (-1)^j binomial(d + 1, j + 1).
  expect_near(polynomial_coefficients(3, {.norm = PolynomialNorm::ifista}), {4, -6, 4, -1}, 0);
  expect_near(polynomial_coefficients(-1), {1}, 0);
}

TEST(PolynomialPreconditioner, NoNeighbourOfTheL2PolynomialIsBetter) {
  for (const auto& [lower, upper] : {std::pair{0.0, 1.0}, {0.2, 3.0}}) {
    for (const int degree : {0, 2, 5, 7}) {
      const Values best = polynomial_coefficients(degree, {.lower = lower, .upper = upper});
      const double least = squared_error(best, lower, upper);
      for (std::size_t j = 0; j < best.size(); ++j) {
        for (const double change : {-1e-3, 1e-3}) {
          Values other = best;
          other[j] += change;
          EXPECT_GT(squared_error(other, lower, upper), least) << degree << " " << j;
        }
      }
    }
  }
}

TEST(PolynomialPreconditioner, TheLinfPolynomialHasEqualExtrema) {
  const double lower = 0.05, upper = 2;
  const Values c =
      polynomial_coefficients(6, {.norm = PolynomialNorm::linf, .lower = lower, .upper = upper});
  double largest = 0;
  int extrema = 0;
  constexpr int kPoints = 4000;
  const auto error = [&](int i) {
    const double x = lower + (upper - lower) * i / kPoints;
    return 1 - x * value_at(c, x);
  };
  for (int i = 0; i <= kPoints; ++i) largest = std::max(largest, std::abs(error(i)));
  for (int i = 0, sign = 0; i <= kPoints; ++i) {
    const double e = error(i);
    const int side = e > 0 ? 1 : -1;
    if (std::abs(e) < 0.999 * largest || side == sign) continue;
    sign = side;
    ++extrema;
  }
  EXPECT_EQ(extrema, 6 + 2);  // one more than 1 - x p has zeros
}

TEST(PolynomialPreconditioner, AppliesTheOperatorDegreeTimes) {
  int applications = 0;
  const auto twice = [&](const Variable& v) {
    ++applications;
    return 0.5 * v;
  };
  const NamedLinop T = SimpleLinop({.fn = twice, .adj_fn = twice, .ishape = "N"});
  for (const int degree : {-1, 0, 1, 4}) {
    const NamedLinop P = polynomial_preconditioner(T, degree);
    applications = 0;
    P(make_input({DType::float64, {3}, {}}, "x"));
    EXPECT_EQ(applications, std::max(degree, 0));
  }
}

class PolynomialOf : public ::testing::TestWithParam<DType> {};

// On diagonal operators P(T) multiplies by p(t), up to rounding, for every degree.
TEST_P(PolynomialOf, ADiagonalIsThePolynomialOfItsElements) {
  const double rounding = real_of(GetParam()) == DType::float32 ? 6e-8 : 1.2e-16;
  const index_t n = 33;
  const Tensor t = Tensor::linspace(0.0, 1.0, n).to(GetParam());
  const NamedLinop T = Diagonal(t, "N");
  const std::vector<std::complex<double>> at =
      t.to(DType::complex128).to_vector<std::complex<double>>();
  for (const auto norm : {PolynomialNorm::l2, PolynomialNorm::linf, PolynomialNorm::ifista}) {
    for (const int degree : {0, 1, 6, 9}) {
      const PolynomialOptions options{norm, norm == PolynomialNorm::linf ? 0.05 : 0.0, 1.0};
      const Values c = polynomial_coefficients(degree, options);
      const NamedLinop P = polynomial_preconditioner(T, degree, options);
      const auto got = P(Tensor::ones({n}, GetParam())).to(DType::complex128);
      const auto values = got.to_vector<std::complex<double>>();
      const double largest = std::abs(c[0]);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // Powers of t, which the operator does not compute, cancel in the expected value.
        Values sizes = c;
        for (double& size : sizes) size = std::abs(size);
        const double bound =
            100 * rounding * largest + 1e-14 * value_at(sizes, std::abs(at[i].real()));
        EXPECT_NEAR(values[i].real(), value_at(c, at[i].real()), bound)
            << static_cast<int>(norm) << " " << degree << " " << i;
        EXPECT_EQ(values[i].imag(), 0);
      }
    }
  }
}

TEST_P(PolynomialOf, PreconditionsConjugateGradients) {
  const index_t n = 60;
  const Tensor t = Tensor::linspace(0.01, 1.0, n).to(GetParam());
  const NamedLinop T = Diagonal(t, "N");
  const Tensor b = Tensor::ones({n}, GetParam());
  const SolveResult plain = conjugate_gradients(T, b, {.tolerance = 1e-4});
  CgOptions options{.tolerance = 1e-4};
  int before = plain.iterations;
  for (const int degree : {1, 3, 8}) {
    options.M = polynomial_preconditioner(T, degree);
    const SolveResult result = conjugate_gradients(T, b, options);
    EXPECT_EQ(result.status, Status::converged);
    EXPECT_LT(result.iterations, before) << degree;
    before = result.iterations;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDtype, PolynomialOf,
                         ::testing::Values(DType::float32, DType::float64, DType::complex64,
                                           DType::complex128),
                         [](const auto& c) { return std::string(name_of(c.param)); });

TEST(PolynomialPreconditioner, RefusesNonsense) {
  const NamedLinop T = Identity("N");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto with = [&](PolynomialOptions o, int degree = 2) {
    return [=] { polynomial_preconditioner(T, degree, o); };
  };
  const auto linf = PolynomialNorm::linf;
  expect_error<ValueError>(with({.norm = linf}), "lower: got bounds 0 and 1, expected 0 < lower");
  expect_error<ValueError>(with({.lower = 1, .upper = 1}), "[polynomial_preconditioner] lower");
  expect_error<ValueError>(with({.lower = nan}), "lower");
  expect_error<ValueError>(with({.upper = std::numeric_limits<double>::infinity()}), "lower");
  expect_error<ValueError>(with({.norm = static_cast<PolynomialNorm>(7)}), "norm: got 7");
  // Odd about 0, and negative above 2.
  expect_error<ValueError>(with({.lower = -1, .upper = 1}), "positive");
  expect_error<ValueError>(with({.norm = PolynomialNorm::ifista, .upper = 3}, 1), "positive");
  expect_error<ValueError>(with({}, 200), "degree: got 200, expected less: rounding");
  expect_error<ValueError>(with({}, 1 << 30), "degree: got 1073741824, expected at most 1000");
  expect_error<ShapeError>(
      [] {
        polynomial_preconditioner(Dense(Tensor::ones({3, 2}), "MN,N->M"), 2);
      },
      "Mismatched");
}

}  // namespace
}  // namespace palimpsest
