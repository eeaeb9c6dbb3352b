// SPDX-License-Identifier: Apache-2.0
// ista, fista, pogm: iterates of a small problem, and properties of all three.
#include "palimpsest/solve/gradient_methods.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "solve/first_order_options.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::as;
using testing::expect_error;

// A = ((2, 1), (0, 1)), b = (1, 2), h = |x|_1 / 2: the solution is (0, 1.25), where F is 0.9375.
class Small : public ::testing::TestWithParam<DType> {
 protected:
  FistaOptions options(int iterations) const {
    return {.tolerance = 0, .max_iterations = iterations, .L = 5.236068};
  }
  void expect_x(const SolveResult& result, double x0, double x1) const {
    const double bound = is_single() ? 2e-6 : 1e-6;
    const auto x = result.x.to(DType::complex128).to_vector<std::complex<double>>();
    EXPECT_EQ(result.x.dtype(), GetParam());
    EXPECT_NEAR(std::abs(x[0] - x0), 0, bound);
    EXPECT_NEAR(std::abs(x[1] - x1), 0, bound);
  }
  double gap(const SolveResult& result) const {
    const auto x = result.x.to(DType::complex128).to_vector<std::complex<double>>();
    const auto r0 = 2.0 * x[0] + x[1] - 1.0, r1 = x[1] - 2.0;
    return (std::norm(r0) + std::norm(r1)) / 2 + (std::abs(x[0]) + std::abs(x[1])) / 2 - 0.9375;
  }
  bool is_single() const { return real_of(GetParam()) == DType::float32; }

  const NamedLinop A_ =
      Dense(Tensor::from<double>({2, 1, 0, 1}).reshape({2, 2}).to(GetParam()), "MN,N->M");
  const Tensor b_ = Tensor::from<double>({1, 2}).to(GetParam());
  const Prox h_ = L1(0.5);
};

TEST_P(Small, IteratesOfIsta) {
  expect_x(ista(A_, h_, b_, as<IstaOptions>(options(1))), 0.286475, 0.477458);
  expect_x(ista(A_, h_, b_, as<IstaOptions>(options(2))), 0.171729, 0.663119);
  if (is_single()) return;
  EXPECT_NEAR(gap(ista(A_, h_, b_, as<IstaOptions>(options(10)))), 2.66e-4, 1e-6);
  EXPECT_NEAR(gap(ista(A_, h_, b_, as<IstaOptions>(options(20)))), 1.76e-8, 1e-10);
}

TEST_P(Small, IteratesOfFista) {
  FistaOptions plain = options(2);
  plain.restart = false;
  expect_x(fista(A_, h_, b_, plain), 0.171729, 0.663119);
  plain.max_iterations = 3;
  expect_x(fista(A_, h_, b_, plain), 0.046112, 0.866372);
  if (is_single()) return;
  plain.max_iterations = 10;
  EXPECT_NEAR(gap(fista(A_, h_, b_, plain)), 1.27e-3, 1e-5);
  plain.max_iterations = 20;
  EXPECT_NEAR(gap(fista(A_, h_, b_, plain)), 3.36e-6, 1e-8);
  EXPECT_NEAR(gap(fista(A_, h_, b_, options(10))), 8.10e-5, 1e-7);
  EXPECT_NEAR(gap(fista(A_, h_, b_, options(20))), 1.71e-11, 1e-13);
}

TEST_P(Small, IteratesOfPogm) {
  expect_x(pogm(A_, h_, b_, as<PogmOptions>(options(1))), 0.429712, 0.716186);
  expect_x(pogm(A_, h_, b_, as<PogmOptions>(options(2))), 0, 0.846216);
  if (is_single()) return;
  FistaOptions plain = options(10);
  plain.restart = false;
  EXPECT_NEAR(gap(pogm(A_, h_, b_, as<PogmOptions>(plain))), 1.04e-4, 1e-6);
  plain.max_iterations = 20;
  EXPECT_NEAR(gap(pogm(A_, h_, b_, as<PogmOptions>(plain))), 3.47e-7, 1e-9);
  EXPECT_LT(gap(pogm(A_, h_, b_, as<PogmOptions>(options(20)))), 2e-7);
}

TEST_P(Small, ConvergesAndCounts) {
  const FistaOptions tolerant{.tolerance = 1e-5, .max_iterations = 500};
  const SolveResult result = fista(A_, h_, b_, tolerant);
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_EQ(result.applications.at("N"), result.iterations);
  EXPECT_EQ(result.applications.at("A^H"), 1);
  EXPECT_EQ(result.applications.at("setup"), 2);
  EXPECT_NEAR(gap(result), 0, 1e-5);
  EXPECT_FALSE(fista(A_, h_, b_, tolerant).applications.contains("setup"));
  EXPECT_LT(result.history.back().residual, 1e-5);
  EXPECT_TRUE(std::isnan(result.history.back().objective));
}

INSTANTIATE_TEST_SUITE_P(EveryDtype, Small,
                         ::testing::Values(DType::float32, DType::float64, DType::complex64,
                                           DType::complex128),
                         [](const auto& c) { return std::string(name_of(c.param)); });

TEST(GradientMethods, WithoutARegularizerTheyAreLeastSquares) {
  const NamedLinop A = Dense(Tensor::random_normal({30, 6}, DType::float64, {3, 0}), "MN,N->M");
  const Tensor x = Tensor::random_normal({6}, DType::float64, {3, 1});
  const FistaOptions options{.tolerance = 1e-12, .max_iterations = 3000};
  EXPECT_TRUE(allclose(gradient_descent(A, A(x), as<IstaOptions>(options)).x, x, 1e-9, 0));
  EXPECT_TRUE(allclose(nesterov(A, A(x), options).x, x, 1e-9, 0));
}

TEST(GradientMethods, TheMeanIsThatOfTheLastIterates) {
  const NamedLinop A = Dense(Tensor::random_normal({9, 4}, DType::complex128, {3, 0}), "MN,N->M");
  const Tensor b = Tensor::random_normal({9}, DType::complex128, {3, 1});
  const auto check = [&]<class Options>(SolveResult (*method)(const NamedLinop&, const Prox&,
                                                              const Tensor&, const Options&)) {
    std::vector<Tensor> iterates;
    Options options{.tolerance = 0, .max_iterations = 7};
    options.callback = [&](const SolveInfo& info) {
      iterates.push_back(info.x());
      return true;
    };
    method(A, L1(0.3), b, options);
    options.callback = {};
    options.average = 3;
    const Tensor mean = (iterates[4] + iterates[5] + iterates[6]) / 3.0;
    EXPECT_TRUE(allclose(method(A, L1(0.3), b, options).x, mean, 1e-13, 1e-13));
    options.average = 100;  // limited to the number of iterates
    Tensor all = iterates[0];
    for (std::size_t k = 1; k < 7; ++k) all = all + iterates[k];
    EXPECT_TRUE(allclose(method(A, L1(0.3), b, options).x, all / 7.0, 1e-13, 1e-13));
    // A run that has converged before the averaging returns x.
    options = {.tolerance = 1e-3, .max_iterations = 5000};
    const Tensor x = method(A, L1(0.3), b, options).x;
    options.average = 2;
    EXPECT_TRUE(equal(method(A, L1(0.3), b, options).x, x));
    options.average = 0;
    expect_error<ValueError>([&] { method(A, L1(0.3), b, options); }, "average: got 0");
  };
  check(&ista);
  check(&fista);
  check(&pogm);
}

TEST(GradientMethods, AProblemNeedsNoNormalOperator) {
  const NamedLinop A = Dense(Tensor::random_normal({9, 4}, DType::complex128, {3, 0}), "MN,N->M");
  const NamedLinop W = Diagonal(Tensor::linspace(0.5, 2, 9), "M");
  const Tensor b = Tensor::random_normal({9}, DType::complex128, {3, 1});
  const SolveOptions options{.tolerance = 0, .max_iterations = 20};
  for (const char* name : {"ista", "fista", "pogm"}) {
    for (const bool has_L : {true, false}) {
      Problem p({b.dtype(), b.shape(), b.device()});
      p.set("A", A).set("W", W).set("h", L1(0.3)).set("max_iterations", 20);
      if (has_L) p.set("L", 60.0);
      const SolveResult apart = solve(*find_solver(name), p, b, options);
      EXPECT_EQ(apart.applications.at("A"), 20);
      EXPECT_EQ(apart.applications.at("A^H"), 21);
      p.set("N", A.normal(W));
      const SolveResult joint = solve(*find_solver(name), p, b, options);
      EXPECT_EQ(joint.applications.at("N"), 20);
      EXPECT_TRUE(allclose(apart.x, joint.x, 1e-11, 1e-11)) << name;
    }
  }
}

// A x - b|^2 / 2 + lambda |x|_1, computed by the operator.
double objective_at(const NamedLinop& A, const Tensor& b, double lambda, const Tensor& x) {
  const double miss = norm(A(x) - b).item<double>();
  return miss * miss / 2 + L1(lambda).value(x);
}

struct Ill : ::testing::Test {  // momentum overshoots
  const NamedLinop A =
      Dense(Tensor::random_normal({30, 20}, DType::float64, {3, 0}) * Tensor::linspace(0.02, 1, 20),
            "MN,N->M");
  const Tensor b = Tensor::random_normal({30}, DType::float64, {3, 1});
  const Prox h = L1(0.3);
  FistaOptions options{.tolerance = 0, .max_iterations = 120, .restart = false};
};

bool rises(const SolveResult& result) {
  for (std::size_t k = 1; k < result.history.size(); ++k) {
    const double before = result.history[k - 1].objective;
    if (result.history[k].objective > before * (1 + 1e-13)) return true;
  }
  return false;
}

TEST_F(Ill, MonotoneStepsNeverRaiseTheObjective) {
  options.objective = RecordObjective::always;
  EXPECT_TRUE(rises(fista(A, h, b, options)));
  options.objective = RecordObjective::automatic;
  options.monotone = true;
  for (const bool restarts : {false, true}) {
    options.restart = restarts;
    const SolveResult result = fista(A, h, b, options);
    EXPECT_FALSE(rises(result));
    EXPECT_EQ(result.applications.at("N"), 120);
    EXPECT_NEAR(result.history.back().objective, objective_at(A, b, 0.3, result.x), 1e-11);
    const SolveResult best = fista(A, h, b, {.tolerance = 1e-13, .max_iterations = 20000});
    EXPECT_NEAR(objective_at(A, b, 0.3, result.x), objective_at(A, b, 0.3, best.x), 2e-2);
  }
  // With a start it takes one more N, and is not worse than the start.
  options.x0 = fista(A, h, b, options).x;
  options.max_iterations = 1;
  const SolveResult on = fista(A, h, b, options);
  EXPECT_EQ(on.applications.at("N"), 2);
  EXPECT_LE(objective_at(A, b, 0.3, on.x), objective_at(A, b, 0.3, *options.x0));
}

// If no step is refused, kept products with N equal new ones.
TEST_F(Ill, KeptImagesChangeNothing) {
  options.max_iterations = 12;
  const Tensor x0 = Tensor::random_normal({20}, DType::float64, {3, 4});
  for (const bool has_x0 : {false, true}) {
    if (has_x0) options.x0 = x0;
    for (const bool restarts : {false, true}) {
      options.restart = restarts;
      options.backtrack = false;
      const Tensor plain = fista(A, h, b, options).x,
                   descent = ista(A, h, b, as<IstaOptions>(options)).x;
      const Tensor smooth = nesterov(A, b, options).x;
      options.backtrack = true;
      EXPECT_TRUE(allclose(fista(A, h, b, options).x, plain, 1e-11, 1e-11));
      EXPECT_TRUE(allclose(ista(A, h, b, as<IstaOptions>(options)).x, descent, 1e-11, 1e-11));
      EXPECT_TRUE(allclose(nesterov(A, b, options).x, smooth, 1e-11, 1e-11));
    }
  }
}

TEST_F(Ill, BacktrackingFindsL) {
  const Tensor best = fista(A, h, b, {.tolerance = 1e-13, .max_iterations = 20000}).x;
  options.max_iterations = 3000;
  options.L = 1e-3;
  EXPECT_EQ(fista(A, h, b, options).status, Status::diverged);
  options.backtrack = true;
  for (const bool is_monotone : {false, true}) {
    options.monotone = is_monotone;
    for (const bool has_momentum : {true, false}) {
      const SolveResult result =
          has_momentum ? fista(A, h, b, options) : ista(A, h, b, as<IstaOptions>(options));
      EXPECT_NEAR(objective_at(A, b, 0.3, result.x), objective_at(A, b, 0.3, best), 1e-5);
      EXPECT_EQ(result.applications.at("N"), result.iterations);
      int refused = 0;
      for (const Record& record : result.history) refused += std::isnan(record.residual) ? 1 : 0;
      EXPECT_GE(refused, 5);
      EXPECT_LE(refused, 20);  // 2^20 times 1e-3 is far beyond the largest eigenvalue
    }
  }
  // It ends at the tolerance, and rounding violates no bound.
  options.tolerance = 1e-6;
  const SolveResult result = fista(A, h, b, options);
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_LT(result.history.back().residual, 1e-6);
}

// Steps of 1 / L with an L that is too small.
TEST(GradientMethods, StepsThatGrowHaveDiverged) {
  const NamedLinop A = Diagonal(Tensor::linspace(1, 3, 4), "N");
  const SolveResult result =
      ista(A, L1(0.1), Tensor::ones({4}), {.max_iterations = 1000, .L = 3.0});
  EXPECT_EQ(result.status, Status::diverged);
  EXPECT_GE(result.iterations, 20);
  EXPECT_LT(result.iterations, 60);
}

TEST(GradientMethods, TakeWhatThePlanSays) {
  const NamedLinop A =
      Dense(Tensor::random_normal({3, 50}, DType::complex64, {3, 0}), "C N,N->C N");
  const Tensor b = Tensor::random_normal({3, 50}, DType::complex64, {3, 1});
  for (const bool has_L : {true, false}) {
    FistaOptions options{.tolerance = 0, .max_iterations = 4};
    if (has_L) options.L = 20.0;
    options.objective = RecordObjective::always;
    const SolvePlan plan = plan_fista(A, L1(0.1), {b.dtype(), b.shape(), {}}, options);
    const MemoryScope scope;
    const SolveResult result = fista(A, L1(0.1), b, options);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes) << has_L;
    EXPECT_TRUE(std::isfinite(result.history.back().objective));
  }
}

TEST(Spectrum, OperatorNorms) {
  const Tensor weights = Tensor::linspace(1, 5, 5, DType::float64);
  const TensorType x{DType::float64, {5}, {}};
  const OperatorNorm found = operator_norm2(Diagonal(weights, "N"), x);
  EXPECT_NEAR(found.value, 25, 0.26);
  EXPECT_GT(found.applications, 0);
  const NamedLinop A = Diagonal(weights, "N");
  const double first = operator_norm2(A, x).value;
  EXPECT_EQ(operator_norm2(A, x).applications, 0);
  EXPECT_EQ(operator_norm2(A, x).value, first);
  Parameter(A.param("weight")).set_value(Tensor::ones({5}));
  EXPECT_NEAR(operator_norm2(A, x).value, 1.01, 1e-9);
}

TEST(Spectrum, OperatorsThatAreNotFiniteAreNamed) {
  const TensorType x{DType::float32, {3}, {}};
  const Tensor b = Tensor::ones({3}, DType::float32);
  for (const double value : {std::nan(""), 1e30}) {
    const NamedLinop A = Diagonal(Tensor::full({3}, value).to(DType::float32), "N");
    expect_error<ValueError>([&] { operator_norm2(A, x); }, "Diagonal");
    expect_error<ValueError>([&] { ista(A, L1(1.0), b); }, "not finite");
  }
}

TEST(GradientMethods, AProxOfNaNLeavesTheLastFiniteIterate) {
  const NamedLinop A = Diagonal(Tensor::full({3}, 1.0), "N");
  const Tensor b = Tensor::from<double>({1, 2, 3});
  const auto check = [&]<class Options>(SolveResult (*solver)(const NamedLinop&, const Prox&,
                                                              const Tensor&, const Options&)) {
    Parameter scale(Tensor::full<double>({}, 0.5));
    const Prox h = CustomProx(
        {.prox = [&](const Variable& v, const Variable&) { return v * scale.var(); }}, "half");
    Options options{.tolerance = 0, .max_iterations = 9, .L = 2.0};
    Tensor last;
    options.callback = [&](const SolveInfo& info) {
      last = info.x();
      if (info.iteration() == 3) scale.set_value(Tensor::full<double>({}, std::nan("")));
      return true;
    };
    const SolveResult result = solver(A, h, b, options);
    EXPECT_EQ(result.status, Status::diverged);
    EXPECT_EQ(result.iterations, 3);
    EXPECT_TRUE(equal(result.x, last));
  };
  check(&ista);
  check(&fista);
  check(&pogm);
}

TEST(Spectrum, LanczosWatchesTheEndThatIsAskedFor) {
  // A large eigenvalue is found at once; the smallest is one of many.
  Tensor weights = Tensor::linspace(-1, 1, 40, DType::float64);
  weights(39).fill(50.0);
  const NamedLinop A = Diagonal(weights, "N");
  const TensorType x{DType::float64, {40}, {}};
  const LanczosResult largest = lanczos(A, x, {.steps = 39, .tolerance = 1e-9});
  EXPECT_NEAR(largest.values.back(), 50, 1e-6);
  EXPECT_GT(std::abs(largest.values.front() + 1), 1e-3);
  const LanczosResult smallest =
      lanczos(A, x, {.steps = 39, .tolerance = 1e-9, .which = SpectrumEnd::smallest});
  EXPECT_NEAR(smallest.values.front(), -1, 1e-6);
  EXPECT_GT(smallest.steps, largest.steps);
}

TEST(Spectrum, RitzVectorsAreEigenvectors) {
  for (const DType dtype : {DType::float64, DType::complex128}) {
    const NamedLinop A = Dense(Tensor::random_normal({9, 6}, dtype, {3, 0}), "M N,N->M").N();
    const TensorType x{dtype, {6}, {}};
    const LanczosResult plain = lanczos(A, x, {.steps = 6, .tolerance = 0});
    EXPECT_FALSE(plain.vectors.defined());
    const LanczosResult result = lanczos(A, x, {.steps = 6, .tolerance = 0, .vectors = true});
    EXPECT_EQ(result.values, plain.values);
    ASSERT_EQ(result.vectors.shape(), (Extents{6, 6}));
    for (index_t k = 0; k < 6; ++k) {
      const Tensor v = result.vectors(k);
      EXPECT_NEAR(norm(v).item<double>(), 1, 1e-10);
      const double value = result.values[static_cast<std::size_t>(k)];
      EXPECT_LT(norm(A(v) - v * value).item<double>(), 1e-9 * result.values.back());
    }
  }
  // Several axes, and fewer steps than requested: the space is exhausted.
  const LanczosResult one = lanczos(Diagonal(Tensor::full<double>({2, 3}, 4.0), "A B"),
                                    {DType::float64, {2, 3}, {}}, {.vectors = true});
  EXPECT_EQ(one.vectors.shape(), (Extents{1, 2, 3}));
}

TEST(Spectrum, TridiagonalEigenvalues) {
  // Second differences: 2 - 2 cos(k pi / (n + 1)).
  const std::vector<double> got = tridiagonal_eigenvalues({2, 2, 2, 2}, {-1, -1, -1});
  for (int k = 1; k <= 4; ++k) {
    EXPECT_NEAR(got[static_cast<std::size_t>(k - 1)], 2 - 2 * std::cos(k * M_PI / 5), 1e-14);
  }
  EXPECT_EQ(tridiagonal_eigenvalues({0, 0}, {0}), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace palimpsest
