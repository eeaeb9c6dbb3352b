// SPDX-License-Identifier: Apache-2.0
// Solvers for square systems and for least squares: residuals computed by hand, agreement with
// direct solutions, memory and numbers of applications.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/operators/shape_spec.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/square_systems.hpp"
#include "support/difference.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::difference;
using testing::expect_error;
using Complex = std::complex<double>;
using Values = std::vector<double>;

class Krylov : public ::testing::TestWithParam<DType> {
 protected:
  Tensor of(const Values& values) const { return Tensor::from<double>(values).to(GetParam()); }
  NamedLinop diagonal(const Values& values) const { return Diagonal(of(values), "N"); }
  NamedLinop matrix(const Values& values, index_t rows, index_t columns) const {
    return Dense(of(values).reshape({rows, columns}), "MN,N->M");
  }
  // Square, with N -> N as dimensions.
  NamedLinop square(const Tensor& weights) const {
    return ShapeSpec("M", "N") * Dense(weights, "MN,N->M");
  }
  Tensor random(Extents shape, std::uint64_t stream) const {
    return Tensor::random_normal(std::move(shape), GetParam(), {31, stream});
  }
  bool is_single() const { return real_of(GetParam()) == DType::float32; }
  double bound() const { return is_single() ? 1e-4 : 1e-9; }
  void expect_residuals(const SolveResult& result, const Values& expected) const {
    ASSERT_EQ(result.history.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result.history[i].residual, expected[i], 1e-5) << i;
    }
  }
};

TEST_P(Krylov, ResidualsOfConjugateGradients) {
  const SolveResult result = conjugate_gradients(diagonal({1, 2, 3, 4, 5}), of({1, 1, 1, 1, 1}));
  expect_residuals(result, {0.471405, 0.239046, 0.101015, 0.029696, 0});
}

TEST_P(Krylov, ResidualsOfMinres) {
  const SolveResult result = minres(diagonal({-2, -1, 1, 2, 3}), of({1, 1, 1, 1, 1}));
  EXPECT_EQ(result.status, Status::converged);
  expect_residuals(result, {0.951453, 0.581775, 0.484234, 0.362738, 0});
  EXPECT_LE(difference(result.x, of({-0.5, -1, 1, 0.5, 1.0 / 3})), bound());
  EXPECT_EQ(result.applications.at("A"), 5);
}

TEST_P(Krylov, ResidualsOfChebyshev) {
  ChebyshevOptions options{.lower = 1, .upper = 5, .max_iterations = 6};
  const SolveResult result = chebyshev(diagonal({1, 2, 3, 4, 5}), of({1, 1, 1, 1, 1}), options);
  EXPECT_EQ(result.status, Status::max_iterations);
  expect_residuals(result, {0.471405, 0.239046, 0.099381, 0.035603, 0.011498, 0.006211});
  options.residual = false;
  const SolveResult blind = chebyshev(diagonal({1, 2, 3, 4, 5}), of({1, 1, 1, 1, 1}), options);
  EXPECT_TRUE(equal(blind.x, result.x));
}

TEST_P(Krylov, ResidualsOfGmres) {
  const NamedLinop A = square(of({0, 1, -1, 0}).reshape({2, 2}));
  const SolveResult result = gmres(A, of({1, 0}));
  EXPECT_EQ(result.status, Status::converged);
  expect_residuals(result, {1, 0});
  EXPECT_LE(difference(result.x, of({0, 1})), bound());
}

TEST_P(Krylov, ThePowerMethodFindsTheLargestEigenvalue) {
  const PowerResult result = power_method(diagonal({1, 2, 3, 4, 5}), of({1, 1, 1, 1, 1}));
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_NEAR(result.eigenvalue, 4.99992, is_single() ? 2e-5 : 1e-5);
  if (!is_single()) {
    EXPECT_EQ(result.iterations, 22);
  }
  EXPECT_EQ(power_method(diagonal({0, 0}), of({1, 1})).eigenvalue, 0);
}

TEST_P(Krylov, LeastSquaresOfASmallMatrix) {
  const NamedLinop A = matrix({1, 0, 1, 1, 0, 1}, 3, 2);
  for (const auto solver : {lsqr, lsmr}) {
    const SolveResult exact = solver(A, of({1, 0, -1}), {});
    EXPECT_EQ(exact.status, Status::converged);
    EXPECT_EQ(exact.iterations, 1);
    EXPECT_EQ(exact.history.back().numbers[0], 1);
    EXPECT_LE(difference(exact.x, of({1, -1})), bound());
    const SolveResult rest = solver(A, of({1, 0.01, -1}), {});
    EXPECT_EQ(rest.history.back().numbers[0], 2);
    EXPECT_LE(difference(rest.x, of({1.0033333333, -0.9966666667})), 1e-5);
    EXPECT_NEAR(rest.history.back().residual * std::sqrt(2 + 1e-4), 0.00577350, 1e-6);
  }
}

// Overdetermined, underdetermined and damped: compared with the normal equations.
TEST_P(Krylov, LeastSquaresSolvers) {
  for (const auto& [rows, columns] : {std::pair<index_t, index_t>{20, 8}, {8, 8}}) {
    const NamedLinop A = Dense(random({rows, columns}, 1), "MN,N->M");
    const Tensor b = random({rows}, 2);
    for (const double damp : {0.0, 0.7}) {
      const NamedLinop N = damp == 0 ? A.N() : A.N() + damp * damp * Identity("N");
      const Tensor rhs = A.H()(b);
      const double tight = is_single() ? 1e-6 : 1e-14;
      const LeastSquaresOptions options{
          .damp = damp, .atol = tight, .btol = tight, .conlim = 0, .max_iterations = 300};
      for (const auto solver : {lsqr, lsmr}) {
        const SolveResult result = solver(A, b, options);
        EXPECT_EQ(result.status, Status::converged);
        EXPECT_LE(difference(N(result.x), rhs), 20 * bound()) << rows << " " << damp;
        EXPECT_EQ(result.applications.at("A"), result.iterations);
        EXPECT_EQ(result.applications.at("A^H"), result.iterations + 1);
      }
      const SolveResult result =
          cgls(A, b, {.damp = damp, .tolerance = tight, .max_iterations = 300});
      EXPECT_LE(difference(N(result.x), rhs), 20 * bound());
      EXPECT_EQ(result.applications.at("A"), result.iterations);
      EXPECT_EQ(result.applications.at("A^H"), result.iterations + 1);
    }
  }
}

TEST_P(Krylov, LeastSquaresFromAStartAndWithAPreconditioner) {
  const NamedLinop A = Dense(random({20, 8}, 1), "MN,N->M");
  const Tensor x = random({8}, 3), b = A(x);
  const double tight = is_single() ? 1e-6 : 1e-13;
  LeastSquaresOptions options{.atol = tight, .btol = tight, .max_iterations = 200};
  options.M = diagonal({1, 2, 1, 0.5, 1, 1, 2, 1});
  EXPECT_LE(difference(lsqr(A, b, options).x, x), bound());
  EXPECT_LE(difference(lsmr(A, b, options).x, x), bound());
  options.x0 = random({8}, 4);
  expect_error<ValueError>([&] { lsqr(A, b, options); }, "[lsqr] x0");
  options.M.reset();
  EXPECT_LE(difference(lsqr(A, b, options).x, x), bound());
  EXPECT_LE(difference(lsmr(A, b, options).x, x), bound());
}

TEST_P(Krylov, AnySquareSystem) {
  const index_t n = 24;
  const NamedLinop A = square(random({n, n}, 5)) + 12 * Identity("N");
  const Tensor x = random({n}, 6), b = A(x),
               weights = Tensor::linspace(0.05, 0.15, n).to(GetParam());
  const double tight = is_single() ? 2e-6 : 1e-12;
  for (const bool has_m : {false, true}) {
    std::optional<NamedLinop> M;
    if (has_m) M = Diagonal(weights, "N");
    for (const bool has_x0 : {false, true}) {
      GmresOptions options{.M = M, .tolerance = tight, .max_iterations = 300};
      if (has_x0) options.x0 = random({n}, 7);
      const SolveResult whole = gmres(A, b, options);
      EXPECT_EQ(whole.status, Status::converged) << has_m << has_x0;
      EXPECT_LE(difference(whole.x, x), bound());
      EXPECT_LE(whole.iterations, n);
      EXPECT_EQ(whole.applications.at("A"), whole.iterations + (has_x0 ? 1 : 0));
      options.restart = 7;
      const SolveResult short_of_memory = gmres(A, b, options);
      EXPECT_EQ(short_of_memory.status, Status::converged) << has_m << has_x0;
      EXPECT_LE(difference(short_of_memory.x, x), bound());
      BicgstabOptions two{.M = M, .tolerance = tight, .max_iterations = 300};
      two.x0 = options.x0;
      const SolveResult stab = bicgstab(A, b, two);
      EXPECT_EQ(stab.status, Status::converged) << has_m << has_x0;
      EXPECT_LE(difference(stab.x, x), bound());
      EXPECT_EQ(stab.applications.at("A"), 2 * stab.iterations + (has_x0 ? 1 : 0));
    }
  }
}

TEST_P(Krylov, HermitianIndefiniteSystems) {
  const index_t n = 16;
  const Tensor weights = random({n, n}, 8);
  const NamedLinop W = square(weights), A = W + W.H();
  const Tensor x = random({n}, 9), b = A(x);
  const double tight = is_single() ? 2e-6 : 1e-12;
  MinresOptions options{.tolerance = tight, .max_iterations = 300};
  EXPECT_LE(difference(minres(A, b, options).x, x), 100 * bound());
  options.M = Diagonal(Tensor::linspace(0.5, 1.5, n).to(GetParam()), "N");
  EXPECT_LE(difference(minres(A, b, options).x, x), 100 * bound());
  options.x0 = random({n}, 7);
  EXPECT_LE(difference(minres(A, b, options).x, x), 100 * bound());
  options.M = -1 * Identity("N");
  options.x0.reset();
  EXPECT_EQ(minres(A, b, options).status, Status::breakdown);
  // A singular consistent system: the solution of least norm.
  EXPECT_LE(difference(minres(diagonal({0, 2, -4}), of({0, 2, 4})).x, of({0, 1, -1})), bound());
}

TEST_P(Krylov, RestartsOfGmresTakeWhatThePlanSays) {
  const index_t n = 60;
  const NamedLinop A = square(random({n, n}, 5)) + 20 * Identity("N");
  const Tensor b = random({n}, 6);
  const MemoryScope scope;
  const SolveResult result = gmres(A, b, {.tolerance = 0, .max_iterations = 12, .restart = 5});
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), result.peak_bytes);
  EXPECT_EQ(result.applications.at("A"), 12 + 2);
}

// Elements end at different iterations, some after others have restarted.
TEST_P(Krylov, ABatchOfGmresIsItsElements) {
  const index_t n = 20;
  for (const bool is_first : {true, false}) {
    const Extents shape = is_first ? Extents{3, n} : Extents{n, 3};
    const Dims dims = is_first ? Dims("S N") : Dims("N S");
    Tensor weights = Tensor::ones({3, n});
    weights(index_t{1}).copy_from(Tensor::linspace(1.0, 2.0, n));
    weights(index_t{2}).copy_from(Tensor::linspace(1.0, 30.0, n));
    if (!is_first) weights = weights.permute({1, 0}).contiguous();
    const NamedLinop A = Diagonal(weights.to(GetParam()), dims);
    const Tensor b = random(shape, 12);
    const double tight = is_single() ? 1e-5 : 1e-12;
    GmresOptions options{.tolerance = tight, .max_iterations = 300, .restart = 6};
    options.batch = "S";
    const SolveResult result = gmres(A, b, options);
    EXPECT_EQ(result.status, Status::converged);
    ASSERT_EQ(result.batch_iterations.size(), 3u);
    EXPECT_EQ(result.batch_iterations[0], 1);
    EXPECT_GT(result.batch_iterations[1], 6);
    EXPECT_GT(result.batch_iterations[2], 2 * result.batch_iterations[1]);
    const index_t axis = is_first ? 0 : 1;
    options.batch = {};
    for (index_t k = 0; k < 3; ++k) {
      const NamedLinop part = A.split({{"S", slice(k, k + 1)}});
      const SolveResult own = gmres(part, b.narrow(axis, k, 1), options);
      const int together = result.batch_iterations[static_cast<std::size_t>(k)];
      EXPECT_LE(std::abs(own.iterations - together), is_single() ? 3 : 0);
      EXPECT_LE(difference(result.x.narrow(axis, k, 1), own.x), 100 * bound());
    }
  }
}

// In a restarting iteration (the 4th), and in others.
TEST_P(Krylov, GmresKeepsTheLastFiniteSolution) {
  const index_t n = 12;
  const Tensor b = random({n}, 13);
  for (const int last : {1, 3, 4, 5}) {
    Parameter weights(Tensor::linspace(1.0, 9.0, n).to(GetParam()));
    const NamedLinop A = Diagonal(weights, "N");
    GmresOptions options{.tolerance = 0, .max_iterations = last, .restart = 3};
    const SolveResult expected = gmres(A, b, options);
    options.max_iterations = 20;
    options.callback = [&](const SolveInfo& info) {
      if (info.iteration() == last) {
        weights.modify([](Tensor& t) { t.fill(std::numeric_limits<double>::quiet_NaN()); });
      }
      return true;
    };
    const SolveResult result = gmres(A, b, options);
    EXPECT_EQ(result.status, Status::diverged) << last;
    EXPECT_EQ(result.iterations, last);
    EXPECT_TRUE(equal(result.x, expected.x)) << last;
  }
}

// An element becomes infinite or NaN on the way, the other continues to its solution.
TEST_P(Krylov, GmresOfABatchKeepsWhatIsFinite) {
  const index_t n = 12;
  const Tensor b = random({2, n}, 14), x0 = random({2, n}, 15);
  const Tensor values = Tensor::linspace(1.0, 6.0, 2 * n).reshape({2, n}).to(GetParam());
  for (const int last : {2, 3, 5}) {
    Parameter weights(values);
    const NamedLinop A = Diagonal(weights, "S N");
    GmresOptions options{.M = Diagonal(Tensor::linspace(0.3, 0.6, n).to(GetParam()), "S N"),
                         .tolerance = is_single() ? 1e-5 : 1e-11,
                         .max_iterations = 100,
                         .restart = 3,
                         .x0 = x0,
                         .batch = "S"};
    const SolveResult whole = gmres(A, b, options);
    EXPECT_EQ(whole.status, Status::converged);
    GmresOptions few = options;
    few.max_iterations = last;
    const SolveResult expected = gmres(A, b, few);
    options.callback = [&](const SolveInfo& info) {
      if (info.iteration() == last) {
        weights.modify(
            [](Tensor& t) { t.narrow(0, 0, 1).fill(std::numeric_limits<double>::quiet_NaN()); });
      }
      return true;
    };
    const SolveResult result = gmres(A, b, options);
    EXPECT_EQ(result.batch_status, (std::vector{Status::diverged, Status::converged}));
    EXPECT_EQ(result.batch_iterations[0], last);
    EXPECT_EQ(result.batch_iterations[1], whole.batch_iterations[1]);
    EXPECT_TRUE(equal(result.x.narrow(0, 0, 1), expected.x.narrow(0, 0, 1))) << last;
    EXPECT_TRUE(equal(result.x.narrow(0, 1, 1), whole.x.narrow(0, 1, 1))) << last;
  }
}

TEST_P(Krylov, MinresTakesNoStepThatASingularSystemDoesNotDetermine) {
  const SolveResult zero = minres(diagonal({0, 0, 0}), of({1, 1, 1}));
  EXPECT_EQ(zero.status, Status::breakdown);
  EXPECT_TRUE(equal(zero.x, of({0, 0, 0})));
  const SolveResult inconsistent = minres(diagonal({1, 0}), of({1, 1}));
  EXPECT_EQ(inconsistent.status, Status::breakdown);
  EXPECT_LE(difference(inconsistent.x, of({1, 1})), bound());
  const SolveResult consistent = minres(diagonal({1, 0, -2}), of({1, 0, 1}));
  EXPECT_EQ(consistent.status, Status::converged);
  EXPECT_LE(difference(consistent.x, of({1, 0, -0.5})), bound());
  const NamedLinop A = diagonal({1, 2});
  for (const auto& x0 : {std::optional<Tensor>(), std::optional(of({3, 1}))}) {
    const SolveResult without = minres(A, of({1, 1}), {.M = diagonal({0, 0}), .x0 = x0});
    EXPECT_EQ(without.status, Status::breakdown);
    EXPECT_TRUE(equal(without.x, x0.value_or(of({0, 0}))));
  }
}

TEST_P(Krylov, APreconditionerOfNaNLeavesAFiniteX) {
  const double nan = std::nan("");
  const NamedLinop A = diagonal({1, 2}), M = diagonal({nan, nan});
  const SolveResult start = gmres(A, of({1, 1}), {.M = M, .x0 = of({3, 1})});
  EXPECT_EQ(start.status, Status::diverged);
  EXPECT_TRUE(equal(start.x, of({3, 1})));
  for (const auto solver : {lsqr, lsmr}) {
    const SolveResult result = solver(A, of({1, 1}), {.M = M});
    EXPECT_EQ(result.status, Status::diverged);
    EXPECT_TRUE(equal(result.x, of({0, 0})));
  }
}

TEST_P(Krylov, ChebyshevNoticesNaNWithoutRecordingResiduals) {
  for (const bool residual : {true, false}) {
    Parameter weights(of({1, 2, 3}));
    ChebyshevOptions options{.lower = 1, .upper = 3, .residual = residual, .max_iterations = 3};
    const SolveResult expected = chebyshev(Diagonal(weights, "N"), of({1, 1, 1}), options);
    options.max_iterations = 20;
    options.callback = [&](const SolveInfo& info) {
      if (info.iteration() == 3) weights.set_value(of({1, std::nan(""), 3}));
      return true;
    };
    const SolveResult result = chebyshev(Diagonal(weights, "N"), of({1, 1, 1}), options);
    EXPECT_EQ(result.status, Status::diverged);
    EXPECT_EQ(result.iterations, 3);
    EXPECT_TRUE(equal(result.x, expected.x));
  }
}

TEST_P(Krylov, LeastSquaresDoNotDependOnTheUnitOfA) {
  for (const auto solver : {lsqr, lsmr}) {
    for (const double unit : {1e-9, 1e9}) {
      const NamedLinop A = diagonal({unit, 2 * unit, 3 * unit, 4 * unit, 5 * unit});
      const SolveResult result = solver(A, of({1, 1, 1, 1, 1}), {});
      EXPECT_EQ(result.status, Status::converged);
      EXPECT_LE(difference(result.x * unit, of({1, 1 / 2., 1 / 3., 1 / 4., 1 / 5.})), 1e-4);
    }
  }
}

TEST_P(Krylov, AnElementOfABatchWithoutDataHasTheSolutionZero) {
  const NamedLinop A = Diagonal(of({1, 2, 3, 4, 5, 6}).reshape({2, 3}), "S N");
  const Tensor b = of({0, 0, 0, 1, 1, 1}).reshape({2, 3}),
               x0 = of({1, 2, 3, 1, 2, 3}).reshape({2, 3});
  const auto expect = [&](const SolveResult& result) {
    EXPECT_TRUE(equal(result.x.narrow(0, 0, 1), of({0, 0, 0}).reshape({1, 3})));
    EXPECT_EQ(result.batch_status[0], Status::converged);
    EXPECT_EQ(result.batch_iterations[0], 0);
    EXPECT_GT(result.batch_iterations[1], 0);
  };
  expect(conjugate_gradients(A, b, {.x0 = x0, .batch = "S"}));
  expect(minres(A, b, {.x0 = x0, .batch = "S"}));
  expect(gmres(A, b, {.x0 = x0, .batch = "S"}));
  expect(bicgstab(A, b, {.x0 = x0, .batch = "S"}));
  expect(chebyshev(A, b, {.lower = 1, .upper = 6, .max_iterations = 5, .x0 = x0, .batch = "S"}));
  expect(cgls(A, b, {.x0 = x0, .batch = "S"}));
  expect(lsqr(A, b, {.x0 = x0, .batch = "S"}));
  expect(lsmr(A, b, {.x0 = x0, .batch = "S"}));
}

TEST_P(Krylov, ThePowerMethodHasAnEigenvalueForEachElement) {
  const NamedLinop A = Diagonal(of({1, 2, 5, 10}).reshape({2, 2}), "S N");
  const PowerResult result =
      power_method(A, Tensor::ones({2, 2}, GetParam()), {.tolerance = 1e-9, .batch = "S"});
  EXPECT_LE(difference(result.eigenvalues.to(DType::float64), Tensor::from<double>({2, 10})), 1e-5);
  EXPECT_NEAR(result.eigenvalue, 10, 1e-4);
  for (const double unit : {1e30, 1e-30}) {
    const Tensor start = Tensor::ones({2, 2}, GetParam()) * unit;
    EXPECT_NEAR(power_method(A, start, {.tolerance = 1e-9}).eigenvalue, 10, 1e-4);
  }
  const PowerResult none = power_method(std::nan("") * A, Tensor::ones({2, 2}, GetParam()));
  EXPECT_EQ(none.status, Status::diverged);
  EXPECT_TRUE(std::isnan(none.eigenvalue));
}

TEST_P(Krylov, PreconditionersAreCounted) {
  const NamedLinop A = diagonal({1, 2, 3}), M = diagonal({1, 0.5, 0.3});
  const SolveResult restarted = gmres(A, of({1, 1, 1}), {.M = M, .tolerance = 0});
  EXPECT_EQ(restarted.applications.at("M"), restarted.iterations + 1);
  const SolveResult result = lsqr(A, of({1, 1, 1}), {.M = M});
  EXPECT_EQ(result.applications.at("M"), result.iterations + 1);
  EXPECT_EQ(result.applications.at("M^H"), result.iterations + 1);
}

INSTANTIATE_TEST_SUITE_P(EveryDtype, Krylov,
                         ::testing::Values(DType::float32, DType::float64, DType::complex64,
                                           DType::complex128),
                         [](const auto& c) { return std::string(name_of(c.param)); });

TEST(SquareSystems, RefuseNonsense) {
  const NamedLinop A = Diagonal(Tensor::ones({3}), "N");
  const Tensor b = Tensor::ones({3});
  expect_error<ValueError>([&] { chebyshev(A, b, {.lower = 2, .upper = 1}); },
                           "[chebyshev] lower: got bounds 2");
  expect_error<ValueError>([&] { gmres(A, b, {.restart = 0}); }, "[gmres] restart: got 0");
  expect_error<ShapeError>(
      [&] {
        minres(Dense(Tensor::ones({3, 2}), "MN,N->M"), b);
      },
      "[minres] Mismatched");
  expect_error<ValueError>([&] { cgls(A, b, {.damp = -1}); }, "[cgls] damp: got -1");
  expect_error<ValueError>([&] { lsmr(A, b, {.damp = -1}); }, "[lsmr] damp: got -1");
  expect_error<ValueError>([&] { lsqr(A, b, {.damp = 1, .x0 = b}); },
                           "[lsqr] damp: got 1 together with x0");
  expect_error<ValueError>([&] { lsmr(A, b, {.damp = 1, .M = A}); },
                           "[lsmr] damp: got 1 together with M");
  expect_error<ShapeError>([&] { minres(A, b, {.batch = "N N"}); }, "[minres] batch: got");
  expect_error<ValueError>(
      [&] { minres(A, b, {.checkpoint = CheckpointOptions{.path = "x", .every_s = -1}}); },
      "[minres] checkpoint.every_s: got -1");
}

}  // namespace
}  // namespace palimpsest
