// SPDX-License-Identifier: Apache-2.0
// Services of the driver for every solver, tested with conjugate gradients: how a run ends,
// batches, counts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/transforms/sampling.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/plan_solve.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "palimpsest/solve/square_systems.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Statuses = std::vector<Status>;

Tensor random(Extents shape, DType dtype, std::uint64_t stream = 0) {
  return Tensor::random_normal(std::move(shape), dtype, {19, stream});
}

NamedLinop positive(DType dtype, index_t n) {
  return Dense(random({n + 3, n}, dtype), "MN,N->M").N() + Identity("N");
}

TEST(Driver, CountsApplications) {
  const SolveResult one = conjugate_gradients(2 * Identity("N"), Tensor::ones({4}));
  EXPECT_EQ(one.applications.at("A"), 1);
  EXPECT_GT(one.peak_bytes, 0);
  EXPECT_GE(one.seconds, 0);
  const NamedLinop A = positive(DType::float64, 12);
  const Tensor b = random({12}, DType::float64, 1);
  CgOptions options{.M = Scalar(0.5, "N"), .tolerance = 0, .max_iterations = 6, .refresh = 2};
  const SolveResult result = conjugate_gradients(A, b, options);
  EXPECT_EQ(result.applications.at("A"), 6 + 3);
  EXPECT_EQ(result.applications.at("M"), 6);
}

TEST(Driver, EndsInTheOrderOfEvents) {
  const NamedLinop A = 2 * Identity("N");
  const Tensor b = Tensor::ones({4});
  CgOptions options;
  options.callback = [](const SolveInfo&) { return false; };
  EXPECT_EQ(conjugate_gradients(A, b, options).status, Status::converged);
  options = {.max_iterations = 0};
  const SolveResult none = conjugate_gradients(A, b, options);
  EXPECT_EQ(none.status, Status::max_iterations);
  EXPECT_TRUE(equal(none.x, Tensor::zeros({4})));
  options = {};
  options.cancel = CancelToken();
  options.cancel->cancel();
  EXPECT_EQ(conjugate_gradients(A, b, options).status, Status::converged);
}

TEST(Driver, CancelsBetweenIterations) {
  const NamedLinop A = positive(DType::float64, 30);
  const Tensor b = random({30}, DType::float64, 1);
  CgOptions options{.tolerance = 0};
  CancelToken token;
  options.cancel = token;
  options.callback = [&](const SolveInfo& info) {
    if (info.iteration() == 4) token.cancel();
    return true;
  };
  const SolveResult result = conjugate_gradients(A, b, options);
  EXPECT_EQ(result.status, Status::cancelled);
  EXPECT_EQ(result.iterations, 4);
  token.reset();
  options.cancel.reset();
  {
    const CancelScope scope(token);
    EXPECT_EQ(conjugate_gradients(A, b, options).status, Status::cancelled);
  }
  EXPECT_NE(conjugate_gradients(A, b, options).status, Status::cancelled);
}

// The graph of a step, made for a problem, tells if it has a guard.
TEST(Driver, ASolverWithoutAGuardOrAStepIsRefused) {
  SolverType type{.name = "unguarded"};
  type.declare = [](const Problem& p, StateList& state) { state.add("x", p.x()); };
  expect_error<ValueError>([&] { register_solver(type); }, "[unguarded] step");
  type.step = [](const Problem&, Scope& s, int) { s.set("x", s["x"] * 2.0); };
  const Problem p = Problem({DType::float64, {4}, {}}).set("A", Identity("N"));
  expect_error<ValueError>([&] { plan_solve(type, p); }, "[unguarded] guard");
  expect_error<ValueError>([&] { solve(type, p, Tensor::ones({4})); }, "[unguarded] guard");
  type.declare = nullptr;
  expect_error<ValueError>([&] { register_solver(type); }, "[unguarded] declare");
  EXPECT_EQ(find_solver("unguarded"), nullptr);
}

TEST(Driver, StopsAtTheTimeLimitAfterOneIterationAtLeast) {
  const NamedLinop A = positive(DType::float64, 30);
  CgOptions options{.tolerance = 0};
  options.time_limit_s = 1e-9;
  options.callback = [](const SolveInfo& info) { return info.seconds_left() < 1e-9; };
  const SolveResult result = conjugate_gradients(A, random({30}, DType::float64, 1), options);
  EXPECT_EQ(result.status, Status::time_limit);
  EXPECT_EQ(result.iterations, 1);
  options.time_limit_s = 0.0;
  expect_error<ValueError>([&] { conjugate_gradients(A, Tensor::ones({30}), options); },
                           "[conjugate_gradients] time_limit");
}

TEST(Driver, CallsBackEverySoOften) {
  std::vector<int> seen;
  CgOptions options{.tolerance = 0, .max_iterations = 10};
  options.callback_every = 3;
  options.callback = [&](const SolveInfo& info) {
    seen.push_back(info.iteration());
    return true;
  };
  conjugate_gradients(positive(DType::float64, 30), random({30}, DType::float64, 1), options);
  EXPECT_EQ(seen, (std::vector{3, 6, 9}));
}

TEST(Driver, StepsOnRequest) {
  const NamedLinop A = positive(DType::complex64, 20);
  const Tensor b = random({20}, DType::complex64, 1);
  ConjugateGradients solver(A, {b.dtype(), b.shape(), b.device()}, {.max_iterations = 5});
  solver.start(b);
  int steps = 1;
  while (solver.step()) EXPECT_EQ(solver.last().iteration, steps++);
  const Tensor x = solver.x();
  const SolveResult result = solver.finish();
  EXPECT_EQ(result.iterations, 5);
  EXPECT_TRUE(equal(result.x, x));
  EXPECT_TRUE(equal(result.x, conjugate_gradients(A, b, {.max_iterations = 5}).x));
  expect_error<StateError>([&] { solver.step(); }, "expected start() before");
  solver.start(b);
  EXPECT_EQ(solver.finish().status, Status::stopped);
}

// Without names, the shapes of a sampling, `..., (), ()` and `..., ()`, match; x is an image
// nevertheless.
TEST(Driver, XHasTheRankThatTheOperatorTakes) {
  Tensor mask = Tensor::zeros({3, 4}, DType::bool_);
  mask(slice(0, 2)).fill(true);
  const NamedLinop A = SamplingFromMask(mask);
  const Tensor b = Tensor::ones({8});
  const Tensor expected = A.H()(b);
  EXPECT_TRUE(allclose(fista(A, L1(1e-9), b, {.L = 1.0}).x, expected, 1e-6, 1e-6));
  EXPECT_TRUE(allclose(cgls(A, b).x, expected, 1e-6, 1e-6));
  EXPECT_TRUE(allclose(lsqr(A, b).x, expected, 1e-6, 1e-6));
  const Objective f{
      .A = A, .W = Diagonal(Tensor::full<double>({8}, 2.0)), .terms = {{.g = L1(1e-9)}}};
  EXPECT_TRUE(allclose(condat_vu(f, b, {.max_iterations = 500}).x, expected, 1e-3, 1e-3));
}

// Two systems that end after different numbers of iterations.
TEST(Driver, EachElementOfABatchEndsOnItsOwn) {
  const Tensor weights = Tensor::from<double>({1, 2, 3, 4, 5, 2, 2, 2, 2, 2}).reshape({2, 5});
  const NamedLinop A = Diagonal(weights, "S N");
  CgOptions options;
  options.batch = "S";
  const SolveResult result = conjugate_gradients(A, Tensor::ones({2, 5}), options);
  EXPECT_EQ(result.status, Status::converged);
  EXPECT_EQ(result.batch_iterations, (std::vector{5, 1}));
  EXPECT_EQ(result.batch_status, (Statuses{Status::converged, Status::converged}));
  EXPECT_EQ(result.applications.at("A"), 5);
  for (index_t s = 0; s < 2; ++s) {
    const SolveResult own =
        conjugate_gradients(Diagonal(weights.select(0, s), "N"), Tensor::ones({5}));
    EXPECT_EQ(own.iterations, result.batch_iterations[static_cast<std::size_t>(s)]);
    EXPECT_TRUE(allclose(result.x.select(0, s), own.x, 1e-14, 0)) << s;
  }
}

// Data that are not finite end their own element only, with x0 or 0.
TEST(Driver, AnElementOfABatchWithoutFiniteDataLeavesTheOthersAlone) {
  const Tensor weights = Tensor::linspace(1, 9, 36, DType::float64).reshape({3, 12});
  const NamedLinop A = Diagonal(weights, "S N");
  Tensor b = random({3, 12}, DType::float64, 1);
  const Tensor x = b / weights, x0 = Tensor::full<double>({3, 12}, 0.5);
  b.set<double>({1, 4}, std::numeric_limits<double>::infinity());
  const auto expect_others = [&](const auto& method, auto options, double tolerance) {
    options.batch = "S";
    options.max_iterations = 3000;
    for (const bool has_x0 : {false, true}) {
      if (has_x0) options.x0 = x0;
      const SolveResult result = method(options);
      EXPECT_EQ(result.batch_status,
                (Statuses{Status::converged, Status::diverged, Status::converged}));
      EXPECT_EQ(result.batch_iterations[1], 0);
      EXPECT_TRUE(equal(result.x.select(0, 1), has_x0 ? x0.select(0, 1) : Tensor::zeros({12})));
      for (const index_t s : {0, 2}) {
        EXPECT_TRUE(allclose(result.x.select(0, s), x.select(0, s), tolerance, tolerance));
      }
    }
  };
  expect_others([&](const CgOptions& o) { return conjugate_gradients(A, b, o); }, CgOptions{},
                1e-4);
  expect_others([&](const GmresOptions& o) { return gmres(A, b, o); }, GmresOptions{}, 1e-4);
  expect_others([&](const MinresOptions& o) { return minres(A, b, o); }, MinresOptions{}, 1e-4);
  expect_others([&](const CglsOptions& o) { return cgls(A, b, o); }, CglsOptions{}, 1e-4);
  expect_others([&](const LeastSquaresOptions& o) { return lsmr(A, b, o); }, LeastSquaresOptions{},
                1e-4);
  expect_others([&](const FistaOptions& o) { return nesterov(A, b, o); }, FistaOptions{.L = 81.0},
                1e-2);
  expect_others(
      [&](const MinimizeOptions& o) {
        return condat_vu({.A = A, .terms = {{.g = L1(1e-9)}}}, b, o);
      },
      MinimizeOptions{.L = 81.0}, 1e-2);
}

// If one begins anew with its true residual, others do so, too, and none that has ended changes.
TEST(Driver, AFarStartInABatchLeavesTheOthersRight) {
  const Tensor weights = Tensor::linspace(1, 9, 36, DType::float32).reshape({3, 12});
  const Tensor b = random({3, 12}, DType::float32, 1);
  Tensor x0 = Tensor::zeros({3, 12}, DType::float32);
  x0(1).fill(3e5);
  const auto expect_solved = [&](const SolveResult& result) {
    EXPECT_EQ(result.batch_status, Statuses(3, Status::converged));
    EXPECT_TRUE(allclose(result.x, b / weights, 1e-3, 1e-5));
  };
  const NamedLinop A = Diagonal(weights, "S N");
  CgOptions options;
  options.batch = "S";
  options.x0 = x0;
  expect_solved(conjugate_gradients(A, b, options));
  GmresOptions of_gmres{.restart = 4};
  of_gmres.batch = "S";
  of_gmres.x0 = x0;
  expect_solved(gmres(A, b, of_gmres));
  of_gmres.restart = 30;
  expect_solved(gmres(A, b, of_gmres));
}

// A batch in two dimensions whose axes are not in the order of the operator's; some elements break
// down, diverge or are zero, others converge.
TEST(Driver, ABadElementLeavesTheOthersAlone) {
  Tensor weights = Tensor::linspace(1, 9, 36, DType::float64).reshape({6, 3, 2}).clone();
  Tensor b = random({6, 3, 2}, DType::float64, 1);
  weights(slice({}, {}), 0, 0).fill(-1.0);
  b(slice({}, {}), 1, 0).fill(0.0);
  weights.set<double>({3, 2, 1}, std::numeric_limits<double>::quiet_NaN());
  CgOptions options;
  options.batch = "T S";
  const SolveResult result = conjugate_gradients(Diagonal(weights, "N S T"), b, options);
  const Statuses expected{Status::breakdown, Status::converged, Status::converged,
                          Status::converged, Status::converged, Status::diverged};
  EXPECT_EQ(result.batch_status, expected);
  EXPECT_EQ(result.status, Status::diverged);
  EXPECT_EQ(result.batch_iterations[1], 0);
  EXPECT_TRUE(equal(result.x(slice({}, {}), 0, 0), Tensor::zeros({6})));
  EXPECT_TRUE(equal(result.x(slice({}, {}), 2, 1), Tensor::zeros({6})));
  for (const auto& [s, t] : {std::pair<index_t, index_t>{2, 0}, {0, 1}, {1, 1}}) {
    const SolveResult own =
        conjugate_gradients(Diagonal(weights(slice({}, {}), s, t), "N"), b(slice({}, {}), s, t));
    EXPECT_TRUE(allclose(result.x(slice({}, {}), s, t), own.x, 1e-12, 1e-14)) << s << t;
  }
}

TEST(Driver, ABatchMustFallApart) {
  CgOptions options;
  options.batch = "N";
  const NamedLinop A = positive(DType::float64, 5);
  expect_error<SplitError>([&] { conjugate_gradients(A, Tensor::ones({5}), options); },
                           "[conjugate_gradients] batch: N");
}

// Terms can couple elements of a batch, like A: an operator that mixes them, or a function of all.
TEST(Driver, ABatchMustFallApartInEveryTerm) {
  const NamedLinop A = Diagonal(Tensor::linspace(1, 3, 12).reshape({3, 4}), "S N");
  const Tensor b = Tensor::ones({3, 4});
  const auto run = [&](const Objective& f) {
    MinimizeOptions options{.max_iterations = 3, .L = 9.0};
    options.batch = "S";
    return minimize(f, b, options).batch_iterations.size();
  };
  EXPECT_EQ(run({.A = A, .terms = {tv_term(0.1, "N", {.dims = Dims("S N")})}}), 3u);
  expect_error<SplitError>(
      [&] { run({.A = A, .terms = {tv_term(0.1, "S", {.dims = Dims("S N")})}}); },
      "[condat_vu] batch: S");
  expect_error<SplitError>([&] { run({.A = A, .h = L2(0.1)}); }, "[fista] batch: S");
  expect_error<SplitError>([&] { run({.A = A, .h = TotalVariation(0.1, "S N")}); },
                           "[fista] batch: S");
}

TEST(Driver, ABatchTakesWhatThePlanSays) {
  const NamedLinop A =
      Diagonal(Tensor::linspace(1, 9, 960, DType::float32).reshape({8, 3, 40}), "S T N");
  const Tensor b = random({8, 3, 40}, DType::complex64, 2);
  CgOptions options{.tolerance = 0, .max_iterations = 4, .refresh = 2};
  options.batch = "T S";
  const SolvePlan plan = plan_conjugate_gradients(A, {b.dtype(), b.shape(), b.device()}, options);
  const MemoryScope scope;
  const SolveResult result = conjugate_gradients(A, b, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  EXPECT_EQ(result.iterations, 4);
}

TEST(Driver, APlanOfACallRunsNothing) {
  const NamedLinop A = Dense(random({30, 20}, DType::float64), "MN,N->M");
  const Tensor b = random({30}, DType::float64, 3);
  CgOptions options{.max_iterations = 5};
  int calls = 0;
  options.callback = [&](const SolveInfo&) { return ++calls > 0; };
  SolveResult seen;
  const SolvePlan plan = plan_solve([&] { seen = cg_normal(A, b, options); });
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(seen.x.defined());
  EXPECT_TRUE(seen.applications.empty());
  const MemoryScope scope;
  const SolveResult result = cg_normal(A, b, options);
  EXPECT_GT(calls, 0);
  EXPECT_EQ(result.peak_bytes, plan.peak_bytes);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
}

TEST(Driver, APlanOfACallNeedsASolver) {
  expect_error<ValueError>([] { plan_solve([] {}); }, "[plan_solve] the call asks for no solver");
  const NamedLinop A = positive(DType::float64, 8);
  const TensorType type{DType::float64, {8}, {}};
  expect_error<NotSupported>([&] { plan_solve([&] { lanczos(A, type); }); }, "single steps");
  EXPECT_EQ(conjugate_gradients(A, Tensor::ones({8}, DType::float64)).status, Status::converged);
}

}  // namespace
}  // namespace palimpsest
