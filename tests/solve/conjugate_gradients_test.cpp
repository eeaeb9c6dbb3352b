// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/conjugate_gradients.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

Tensor random(Extents shape, DType dtype, std::uint64_t stream = 0) {
  return Tensor::random_normal(std::move(shape), dtype, {9, stream});
}

// W^H W + I for a random W.
NamedLinop positive(DType dtype, index_t n) {
  return Dense(random({n + 3, n}, dtype), "MN,N->M").N() + Identity("N");
}

double residual(const NamedLinop& A, const Tensor& x, const Tensor& b) {
  const auto u = A(x).to(DType::complex128).to_vector<std::complex<double>>();
  const auto v = b.to(DType::complex128).to_vector<std::complex<double>>();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    difference += std::norm(u[i] - v[i]);
    size += std::norm(v[i]);
  }
  return std::sqrt(difference / size);
}

TEST(ConjugateGradients, SolvesTwoTimesIdentityInOneIteration) {
  const SolveResult result = conjugate_gradients(2 * Identity("N"), Tensor::ones({4}));
  EXPECT_EQ(result.x.to_vector<double>(), std::vector<double>(4, 0.5));
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_EQ(result.iterations, 1);
  ASSERT_EQ(result.history.size(), 1u);
  EXPECT_EQ(result.history[0].iteration, 1);
  EXPECT_EQ(result.history[0].residual, 0);
  EXPECT_EQ(result.history[0].objective, -1);  // <x, A x> / 2 - <b, x>
  EXPECT_GE(result.history[0].seconds, 0);
}

TEST(ConjugateGradients, SolvesInAsManyIterationsAsThereAreEigenvalues) {
  const NamedLinop A = Diagonal(Tensor::from<double>({1, 2, 4, 4, 2, 1}), "N");
  const Tensor b = Tensor::from<double>({1, 2, 3, 4, 5, 6});
  const SolveResult result = conjugate_gradients(A, b, {.tolerance = 1e-12});
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_EQ(result.iterations, 3);
  EXPECT_LE(residual(A, result.x, b), 1e-12);
}

TEST(ConjugateGradients, SolvesInEveryDtype) {
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    const NamedLinop A = positive(dtype, 12);
    const Tensor b = random({12}, dtype, 1);
    const bool is_single = real_of(dtype) == DType::float32;
    const double tolerance = is_single ? 1e-5 : 1e-12;
    const SolveResult result = conjugate_gradients(A, b, {.tolerance = tolerance});
    EXPECT_EQ(result.status, Status::converged) << name_of(dtype);
    EXPECT_EQ(result.x.dtype(), dtype);
    EXPECT_LE(residual(A, result.x, b), 2 * tolerance + (is_single ? 1e-5 : 1e-13));
  }
}

TEST(ConjugateGradients, ARealRightHandSideOfAComplexOperatorBecomesComplex) {
  const NamedLinop A = positive(DType::complex128, 8);
  const Tensor b = random({8}, DType::float64, 1);
  for (const int refresh : {0, 2}) {
    const SolveResult result = conjugate_gradients(A, b, {.tolerance = 1e-12, .refresh = refresh});
    EXPECT_EQ(result.x.dtype(), DType::complex128);
    EXPECT_LE(residual(A, result.x, b), 1e-11);
  }
}

TEST(ConjugateGradients, APreconditionerHelps) {
  std::vector<double> weights, inverse;
  for (int i = 0; i < 60; ++i) {
    weights.push_back(std::pow(10.0, i / 10.0));
    inverse.push_back(1 / weights.back());
  }
  const NamedLinop A = Diagonal(Tensor::from(weights), "N") + 0.5 * Identity("N");
  const NamedLinop M = Diagonal(Tensor::from(inverse), "N");
  const Tensor b = Tensor::ones({60});
  const SolveResult plain = conjugate_gradients(A, b, {.tolerance = 1e-10, .max_iterations = 500});
  const SolveResult helped = conjugate_gradients(A, b, {.M = M, .tolerance = 1e-10});
  EXPECT_EQ(helped.status, Status::converged);
  EXPECT_LT(helped.iterations, plain.iterations / 2);
  EXPECT_LE(residual(A, helped.x, b), 1e-9);
}

TEST(ConjugateGradients, StartsAtX0) {
  const NamedLinop A = positive(DType::complex128, 10);
  const Tensor b = random({10}, DType::complex128, 1);
  const Tensor solution = conjugate_gradients(A, b, {.tolerance = 1e-13}).x;
  const Tensor before = solution.clone();
  const SolveResult again = conjugate_gradients(A, b, {.tolerance = 1e-10, .x0 = solution});
  EXPECT_EQ(again.status, Status::converged);
  EXPECT_EQ(again.iterations, 0);
  EXPECT_TRUE(equal(again.x, before));
  EXPECT_FALSE(shares_storage(again.x, solution));
  const Tensor x0 = random({10}, DType::complex128, 2), x0_before = x0.clone();
  const SolveResult other = conjugate_gradients(A, b, {.tolerance = 1e-12, .x0 = x0});
  EXPECT_TRUE(equal(x0, x0_before));
  EXPECT_LE(residual(A, other.x, b), 1e-11);
}

TEST(ConjugateGradients, TheObjectiveIsThatOfTheIterate) {
  const NamedLinop A = positive(DType::float64, 10);
  const Tensor b = random({10}, DType::float64, 1), x0 = random({10}, DType::float64, 2);
  const SolveResult result = conjugate_gradients(A, b, {.max_iterations = 3, .x0 = x0});
  const auto x = result.x.to_vector<double>(), Ax = A(result.x).to_vector<double>(),
             rhs = b.to_vector<double>();
  double objective = 0;
  for (std::size_t i = 0; i < x.size(); ++i) objective += x[i] * Ax[i] / 2 - rhs[i] * x[i];
  EXPECT_NEAR(result.history.back().objective, objective, 1e-10 * std::abs(objective));
  EXPECT_EQ(result.status, Status::max_iterations);
  EXPECT_NEAR(result.history.back().residual, residual(A, result.x, b), 1e-10);
}

TEST(ConjugateGradients, WithoutRightHandSideTheSolutionIsZero) {
  const NamedLinop A = positive(DType::complex64, 5);
  const Tensor b = Tensor::zeros({5}, DType::complex64);
  for (const bool with_x0 : {false, true}) {
    CgOptions options;
    if (with_x0) options.x0 = Tensor::ones({5}, DType::complex64);
    const SolveResult result = conjugate_gradients(A, b, options);
    EXPECT_EQ(result.status, Status::converged);
    EXPECT_EQ(result.iterations, 0);
    EXPECT_TRUE(equal(result.x, b));
    EXPECT_TRUE(result.history.empty());
  }
}

TEST(ConjugateGradients, NoIterationsGiveTheStart) {
  const SolveResult result =
      conjugate_gradients(positive(DType::float64, 5), Tensor::ones({5}), {.max_iterations = 0});
  EXPECT_EQ(result.status, Status::max_iterations);
  EXPECT_TRUE(equal(result.x, Tensor::zeros({5})));
}

TEST(ConjugateGradients, ANegativeDirectionBreaksDown) {
  const NamedLinop A = Diagonal(Tensor::from<double>({1, -1, 2}), "N");
  const SolveResult result = conjugate_gradients(A, Tensor::from<double>({0, 1, 0}));
  EXPECT_EQ(result.status, Status::breakdown);
  EXPECT_EQ(result.iterations, 0);
  EXPECT_TRUE(equal(result.x, Tensor::zeros({3})));
}

TEST(ConjugateGradients, AnOperatorThatIsNotHermitianBreaksDown) {
  const NamedLinop A = std::complex<double>(1, 0.5) * Identity("N");
  const SolveResult result = conjugate_gradients(A, Tensor::ones({3}, DType::complex128));
  EXPECT_EQ(result.status, Status::breakdown);
  EXPECT_TRUE(equal(result.x, Tensor::zeros({3}, DType::complex128)));
}

TEST(ConjugateGradients, ANegativePreconditionerBreaksDown) {
  const SolveResult result =
      conjugate_gradients(positive(DType::float64, 4), Tensor::ones({4}), {.M = Scalar(-1, "N")});
  EXPECT_EQ(result.status, Status::breakdown);
}

TEST(ConjugateGradients, NanInTheRightHandSideDiverges) {
  Tensor b = Tensor::ones({4});
  b.set<double>({2}, NAN);
  const SolveResult result = conjugate_gradients(positive(DType::float64, 4), b);
  EXPECT_EQ(result.status, Status::diverged);
  EXPECT_EQ(result.iterations, 0);
  EXPECT_TRUE(equal(result.x, Tensor::zeros({4})));
}

TEST(ConjugateGradients, DivergenceLeavesTheLastFiniteIterate) {
  Tensor w = Tensor::from<double>({1, 2, 3, 4, 5});
  const SharedVariable weight = shared(w, {.shape = Extents{5}});
  const NamedLinop A = Diagonal(Parameter(weight), "N");
  CgOptions options{.tolerance = 0, .max_iterations = 10};
  Tensor at_two;
  options.callback = [&](const CgInfo& info) {
    if (info.iteration() == 2) {
      at_two = info.x().clone();
      Tensor bad = w.clone();
      bad.set<double>({0}, std::numeric_limits<double>::infinity());
      SharedVariable(weight).set_value(bad);
    }
    return true;
  };
  const SolveResult result = conjugate_gradients(A, Tensor::ones({5}), options);
  EXPECT_EQ(result.status, Status::diverged);
  EXPECT_EQ(result.iterations, 2);
  EXPECT_TRUE(equal(result.x, at_two));
}

TEST(ConjugateGradients, TheCallbackStops) {
  int calls = 0;
  CgOptions options{.tolerance = 0};
  options.callback = [&](const CgInfo& info) {
    EXPECT_EQ(info.iteration(), ++calls);
    EXPECT_GT(info.residual(), 0);
    EXPECT_GE(info.seconds(), 0);
    return calls < 3;
  };
  const SolveResult result =
      conjugate_gradients(positive(DType::float64, 9), Tensor::ones({9}), options);
  EXPECT_EQ(result.status, Status::stopped);
  EXPECT_EQ(result.iterations, 3);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(result.history.size(), 3u);
}

TEST(ConjugateGradients, HistoryCanBeLeftOut) {
  const SolveResult result =
      conjugate_gradients(positive(DType::float64, 9), Tensor::ones({9}), {.history = false});
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_TRUE(result.history.empty());
}

TEST(ConjugateGradients, ResidualsAreThoseOfARefreshedRunToo) {
  const NamedLinop A = positive(DType::float64, 20);
  const Tensor b = random({20}, DType::float64, 1);
  const SolveResult plain = conjugate_gradients(A, b, {.tolerance = 1e-8});
  const SolveResult refreshed = conjugate_gradients(A, b, {.tolerance = 1e-8, .refresh = 3});
  EXPECT_LE(residual(A, refreshed.x, b), 1.01e-8);
  for (std::size_t k = 0; k < 9; ++k) {
    EXPECT_NEAR(plain.history[k].residual, refreshed.history[k].residual, 1e-9);
  }
}

// Beyond the last digit the recurred residual is lost; x stays at the solution, and until then no
// iteration is wasted.
TEST(ConjugateGradients, RefreshedRunsStayAtTheSolution) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double bound = dtype == DType::float32 ? 1e-5 : 1e-13;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Tensor matrix = Tensor::random_normal({30, 15}, dtype, {seed});
      const NamedLinop A = Dense(matrix, "MN,N->M").N() + 2.0 * Identity("N");
      const Tensor b = Tensor::random_normal({15}, dtype, {seed, 2});
      const Tensor weights = Tensor::random_uniform({15}, dtype, {seed, 3});
      for (const bool has_M : {false, true}) {
        CgOptions options{.tolerance = 1e-4, .max_iterations = 200};
        if (has_M) options.M = Diagonal(weights, "N") + 0.5 * Identity("N");
        const int plain = conjugate_gradients(A, b, options).iterations;
        for (const int refresh : {1, 2, 3, 5, 10}) {
          options.refresh = refresh;
          options.tolerance = 1e-4;
          EXPECT_LE(conjugate_gradients(A, b, options).iterations, plain + 1) << refresh;
          options.tolerance = 0;
          EXPECT_LT(residual(A, conjugate_gradients(A, b, options).x, b), bound)
              << name_of(dtype) << " " << seed << " " << refresh << " " << has_M;
        }
      }
    }
  }
}

TEST(ConjugateGradients, OperatorsAreUnchanged) {
  const NamedLinop A = positive(DType::complex64, 6);
  const NamedLinop adjoint = A.H(), normal = A.N();
  const Tensor b = random({6}, DType::complex64, 1), before = b.clone();
  conjugate_gradients(A, b);
  EXPECT_TRUE(equal(b, before));
  EXPECT_TRUE(A.H().is(adjoint));
  EXPECT_TRUE(A.N().is(normal));
}

TEST(ConjugateGradients, SeesParametersThatWereWritten) {
  NamedLinop W = Dense(random({5, 4}, DType::float64), "MN,N->M");
  const NamedLinop A = W.N();
  const Tensor b = Tensor::ones({4});
  conjugate_gradients(A, b);
  Parameter weight = W.param("weight");
  weight.set_value(random({5, 4}, DType::float64, 5));
  const SolveResult result = conjugate_gradients(A, b, {.tolerance = 1e-10});
  EXPECT_LE(residual(Dense(weight.value(), "MN,N->M").N(), result.x, b), 1e-9);
}

TEST(ConjugateGradients, CgNormalMinimizes) {
  const NamedLinop A = Dense(random({9, 4}, DType::complex128), "MN,N->M");
  const Tensor b = random({9}, DType::complex128, 1);
  const SolveResult result = cg_normal(A, b, {.tolerance = 1e-12});
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_LE(residual(A.N(), result.x, A.H()(b)), 1e-11);
}

TEST(ConjugateGradients, StatusesHaveNames) {
  EXPECT_EQ(name_of(Status::converged), "converged");
  EXPECT_EQ(name_of(Status::max_iterations), "max_iterations");
  EXPECT_EQ(name_of(Status::breakdown), "breakdown");
  EXPECT_EQ(name_of(Status::diverged), "diverged");
  EXPECT_EQ(name_of(Status::stopped), "stopped");
}

TEST(ConjugateGradients, WrongArgumentsAreRefused) {
  const NamedLinop W = Dense(random({5, 4}, DType::float64), "MN,N->M");
  const NamedLinop A = positive(DType::float64, 4);
  const Tensor b = Tensor::ones({4});
  const auto solve = [&](CgOptions options) { conjugate_gradients(A, b, options); };
  expect_error<ShapeError>([&] { conjugate_gradients(W, b); }, "Mismatched");
  expect_error<ShapeError>([&] { solve({.M = W}); }, "Mismatched");
  expect_error<ShapeError>([&] { solve({.M = W.H()}); }, "Mismatched");
  expect_error<ShapeError>([&] { conjugate_gradients(A, Tensor::ones({5})); }, "expected 4");
  expect_error<DTypeError>([&] { conjugate_gradients(A, Tensor::ones({4}, DType::float32)); },
                           "precision");
  expect_error<ValueError>([&] { solve({.tolerance = -1}); }, "tolerance");
  expect_error<ValueError>([&] { solve({.tolerance = NAN}); }, "tolerance");
  expect_error<ValueError>([&] { solve({.max_iterations = -1}); }, "max_iterations");
  expect_error<ValueError>([&] { solve({.refresh = -1}); }, "refresh");
  expect_error<ShapeError>([&] { solve({.x0 = Tensor::ones({3})}); }, "x0");
  expect_error<DTypeError>([&] { solve({.x0 = Tensor::ones({4}, DType::float32)}); }, "x0");
  expect_error<DTypeError>([&] { solve({.x0 = Tensor::ones({4}, DType::complex128)}); }, "x0");
}

// Code written for CgOptions before other solvers had options: all names, in their order, and
// values by position.
TEST(ConjugateGradients, OptionsKeepTheirNamesAndTheirOrder) {
  const NamedLinop A = Diagonal(Tensor::linspace(1, 4, 4), "N");
  const Tensor b = Tensor::ones({4});
  int calls = 0;
  std::function<bool(const CgInfo&)> callback = [&](const CgInfo& info) {
    ++calls;
    return info.iteration() > 0 && info.residual() >= 0 && info.seconds() >= 0 &&
           info.x().shape() == Extents{4};
  };
  const CgOptions named{.M = Scalar(0.5, "N"),
                        .tolerance = 1e-12,
                        .max_iterations = 50,
                        .refresh = 3,
                        .x0 = Tensor::full<double>({4}, 2.0),
                        .callback = callback,
                        .history = true,
                        .budget_bytes = index_t{1} << 30};
  const CgOptions placed{
      Scalar(0.5, "N"), 1e-12, 50, 3, Tensor::full<double>({4}, 2.0), callback, true,
      index_t{1} << 30};
  ConjugateGradients planned(A, TensorType{b.dtype(), b.shape(), b.device()}, named);
  const SolvePlan& plan = planned.plan();
  EXPECT_GT(plan.peak_bytes, plan.state_bytes + plan.setup_bytes * 0);
  EXPECT_GE(plan.total_bytes(), plan.operator_bytes + plan.streamed_bytes);
  EXPECT_EQ(plan.tiles, 1);
  EXPECT_TRUE(plan.sizes.empty());
  const SolveResult result = planned.run(b);
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_EQ(calls, result.iterations);
  EXPECT_EQ(result.history.size(), static_cast<std::size_t>(result.iterations));
  EXPECT_TRUE(equal(conjugate_gradients(A, b, placed).x, result.x));
  EXPECT_TRUE(allclose(cg_normal(A, b, {.tolerance = 1e-12}).x, result.x, 1e-9, 1e-9));
  EXPECT_LE(smallest_cg_budget(A, {b.dtype(), b.shape(), b.device()}, named), plan.total_bytes());
}

// Doubles its input; counts its runs.
class Doubling final : public Op {
 public:
  static std::atomic<int> runs;
  std::string name() const override { return "Doubling"; }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  void run(RunContext& context) const override {
    ++runs;
    const auto* x = static_cast<const double*>(context.input(0).data);
    auto* y = static_cast<double*>(context.output(0).data);
    const index_t n = element_count(context.input(0).extents);
    for (index_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  }
};
std::atomic<int> Doubling::runs{0};

const LinopType kDoubling{.name = "test.Doubling",
                          .functions = {.fn = [](const NamedLinop&, const Variable& x) {
                            return std::make_shared<Doubling>()->make_node({&x, 1}).output(0);
                          }}};

TEST(ConjugateGradients, CountsOfApplicationsAreExact) {
  // Eight different eigenvalues, so that the iteration does not end early.
  const NamedLinop A =
      Chain(make_linop(kDoubling, NamedShape("N")), Diagonal(Tensor::linspace(1, 8, 8), "N"));
  const Tensor b = Tensor::ones({8});
  const auto runs = [&](CgOptions options) {
    options.tolerance = 0;
    options.max_iterations = 6;
    Doubling::runs = 0;
    EXPECT_EQ(conjugate_gradients(A, b, options).iterations, 6);
    return Doubling::runs.load();
  };
  EXPECT_EQ(runs({}), 6);
  EXPECT_EQ(runs({.x0 = Tensor::ones({8})}), 7);
  EXPECT_EQ(runs({.refresh = 3}), 8);
  EXPECT_EQ(runs({.M = Scalar(2.0, "N"), .refresh = 2}), 9);
}

TEST(ConjugateGradients, AppliesThePreconditionerOncePerIteration) {
  const Tensor b = random({40}, DType::float64, 1);
  const NamedLinop A = positive(DType::float64, 40),
                   M = Chain(Scalar(2.0, "N"), make_linop(kDoubling, NamedShape("N")));
  const auto runs = [&](CgOptions options) {
    options.M = M;
    options.tolerance = 0;
    options.max_iterations = 6;
    Doubling::runs = 0;
    EXPECT_EQ(conjugate_gradients(A, b, options).iterations, 6);
    return Doubling::runs.load();
  };
  EXPECT_EQ(runs({}), 6);
  EXPECT_EQ(runs({.x0 = Tensor::ones({40})}), 6);
  EXPECT_EQ(runs({.refresh = 3}), 6);
}

}  // namespace
}  // namespace palimpsest
