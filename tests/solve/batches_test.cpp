// SPDX-License-Identifier: Apache-2.0
// Blocks of independent problems that are solved part by part.
#include "palimpsest/solve/batches.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

constexpr index_t kS = 7, kT = 3, kN = 30;

Tensor random(Extents shape, std::uint64_t stream, DType dtype = DType::complex128) {
  return Tensor::random_normal(std::move(shape), dtype, {83, stream});
}
TensorType type_of(const Tensor& t) { return {t.dtype(), t.shape(), t.device()}; }

// Maps of 4 coils on S x T images of N points, which can be cut along S and T, times weights that
// cannot.
struct Sample {
  NamedLinop A = Dense(random({4, kS, kT, kN}, 1), "C S T N,S T N->C S T N") *
                 Diagonal(Tensor::linspace(1.0, 2.0, kN), "S T N");
  Tensor b = random({4, kS, kT, kN}, 2);
  Problem problem(const char* solver) const {
    Problem p(type_of(b));
    if (std::string(solver) == "fista") {
      p = objective_problem({.A = A, .h = L1(0.05)}, type_of(b)).set("L", 60.0);
      return p.set("restart", true).set("max_iterations", 1000);
    }
    return p.set("A", A).set("damp", 0.2);
  }
};

TEST(SolveInBatches, PartsGiveWhatTheWholeGives) {
  const Sample sample;
  for (const char* solver : {"cgls", "lsmr", "fista"}) {
    const SolverType& type = *find_solver(solver);
    const Problem p = sample.problem(solver);
    const SolveOptions options{.tolerance = 1e-5, .max_iterations = 40, .batch = "S T"};
    const SolveResult whole = solve(type, p, sample.b, options);
    const BatchesOptions one{.dims = "S T", .solve = options};
    const index_t largest = plan_batches(type, p, one).peak_bytes;
    EXPECT_EQ(plan_batches(type, p, one).runs, 1);
    for (const double share : {0.8, 0.5, 0.3}) {
      BatchesOptions cut = one;
      cut.bytes = static_cast<index_t>(share * static_cast<double>(largest));
      const BatchesPlan plan = plan_batches(type, p, cut);
      EXPECT_LE(plan.peak_bytes, *cut.bytes);
      EXPECT_GT(plan.runs, 1);
      const MemoryScope scope;
      const BatchesResult result = solve_in_batches(type, p, sample.b, cut);
      EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes) << solver << share;
      EXPECT_EQ(result.all.peak_bytes, plan.peak_bytes);
      EXPECT_EQ(result.runs, plan.runs);
      EXPECT_LE(result.solvers, 2);
      EXPECT_TRUE(allclose(result.all.x, whole.x, 1e-4, 1e-5)) << solver << share;
      EXPECT_EQ(result.all.status, whole.status);
      EXPECT_EQ(result.all.batch_status, whole.batch_status);
      for (std::size_t i = 0; i < whole.batch_iterations.size(); ++i) {
        EXPECT_LE(std::abs(result.all.batch_iterations[i] - whole.batch_iterations[i]), 1) << i;
      }
    }
  }
}

// The first dimension is cut down to single elements before the second is cut.
TEST(SolveInBatches, TakesTheLargestPartThatFits) {
  const Sample sample;
  const SolverType& type = *find_solver("cgls");
  const Problem p = sample.problem("cgls");
  BatchesOptions options{.dims = "S T"};
  const auto lowered = [&] {
    options.bytes = plan_batches(type, p, options).peak_bytes - 1;
    return plan_batches(type, p, options);
  };
  BatchesPlan plan = lowered();
  while (plan.sizes.at("S") > 1) {
    const index_t s = plan.sizes.at("S");
    EXPECT_LT(s, kS);
    EXPECT_EQ(plan.sizes.at("T"), kT);
    EXPECT_EQ(plan.runs, (kS + s - 1) / s);
    plan = lowered();
    EXPECT_EQ(plan.sizes.at("S"), s - 1);
  }
  EXPECT_EQ(plan.runs, kS);
  plan = lowered();
  EXPECT_EQ(plan.sizes, (DimMap{{"S", 1}, {"T", 2}}));
  EXPECT_EQ(plan.runs, 2 * kS);
  options.bytes = 1000;
  expect_error<BudgetError>([&] { plan_batches(type, p, options); },
                            "[cgls] in batches: nothing fits into the budget: got 1000 bytes");
}

TEST(SolveInBatches, ASinkTakesEachResult) {
  const Sample sample;
  const SolverType& type = *find_solver("cgls");
  const Problem p = sample.problem("cgls");
  const SolveOptions solve_options{.max_iterations = 6, .batch = "S T"};
  const SolveResult whole = solve(type, p, sample.b, solve_options);
  BatchesOptions options{.dims = "S T", .solve = solve_options};
  options.bytes = plan_batches(type, p, options).peak_bytes / 3;
  const index_t with_x = plan_batches(type, p, options).sizes.at("S");
  index_t elements = 0;
  options.sink = [&](const Tile& where, SolveResult& part) {
    const Slice s = where.at("S");
    EXPECT_TRUE(allclose(part.x, whole.x(slice(*s.start, *s.stop)), 1e-8, 1e-10));
    EXPECT_EQ(part.history.size(), 6u);
    elements += *s.stop - *s.start;
    part.x = Tensor();
  };
  const BatchesPlan plan = plan_batches(type, p, options);
  EXPECT_GE(plan.sizes.at("S"), with_x);
  const MemoryScope scope;
  const BatchesResult result = solve_in_batches(type, p, sample.b, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  EXPECT_FALSE(result.all.x.defined());
  EXPECT_EQ(elements, kS);
  EXPECT_EQ(result.all.applications.at("A"), 6 * result.runs);
}

// Dimensions that are not the first, a start value, the budget of the config, and an early end.
TEST(SolveInBatches, StartsAndEndsAsOneRun) {
  const NamedLinop A =
      Dense(random({kN, kN, kS}, 3, DType::float64), "M N S,N S->M S").N() + Identity("N S");
  const Tensor b = random({kN, kS}, 4, DType::float64), x0 = random({kN, kS}, 5, DType::float64);
  const SolverType& type = *find_solver("conjugate_gradients");
  const Problem p = Problem(type_of(b)).set("A", A);
  SolveOptions one{.max_iterations = 5, .x0 = x0, .batch = "S"};
  const SolveResult whole = solve(type, p, b, one);
  BatchesOptions options{.dims = "S", .solve = one};
  ConfigOverrides overrides;
  overrides.budget = plan_batches(type, p, options).peak_bytes / 2;
  const ConfigScope scope(overrides);
  const BatchesResult result = solve_in_batches(type, p, b, options);
  EXPECT_GT(result.runs, 1);
  EXPECT_TRUE(allclose(result.all.x, whole.x, 1e-10, 1e-12));
  CancelToken token;
  options.solve.cancel = token;
  int calls = 0;
  options.solve.callback = [&](const SolveInfo&) {
    if (++calls == 7) token.cancel();
    return true;
  };
  const BatchesResult cancelled = solve_in_batches(type, p, b, options);
  EXPECT_EQ(cancelled.all.status, Status::cancelled);
  EXPECT_EQ(calls, 7);
  const index_t size = cancelled.sizes.at("S");
  EXPECT_TRUE(equal(cancelled.all.x.narrow(1, 0, size), result.all.x.narrow(1, 0, size)));
  EXPECT_EQ(cancelled.all.batch_status[0], Status::max_iterations);
  EXPECT_EQ(cancelled.all.batch_status[static_cast<std::size_t>(size)], Status::cancelled);
  EXPECT_EQ(cancelled.all.batch_iterations[static_cast<std::size_t>(size)], 2);
  // Parts that did not run keep their start value.
  if (result.runs > 2) {
    EXPECT_TRUE(equal(cancelled.all.x.narrow(1, 2 * size, 1), x0.narrow(1, 2 * size, 1)));
  }
}

TEST(SolveInBatches, RefusesNonsense) {
  const Sample sample;
  const SolverType& type = *find_solver("cgls");
  const Problem p = sample.problem("cgls");
  const auto with = [&](const BatchesOptions& o) {
    return [&, o] { solve_in_batches(type, p, sample.b, o); };
  };
  expect_error<ValueError>(with({}), "[cgls] in batches: dims: got none");
  expect_error<SplitError>(with({.dims = "N C"}), "[cgls] batch: C");
  expect_error<ValueError>(with({.dims = "S", .solve = {.resume = "file"}}), "checkpoint");
  expect_error<ShapeError>(
      [&] { solve_in_batches(type, p, sample.b.narrow(1, 0, 2), {.dims = "S"}); },
      "[cgls] b: got shape");
  const Problem with_weights = objective_problem(
      {.A = sample.A, .h = L1(0.1, {.weights = Tensor::ones({kS, 1, 1})})}, type_of(sample.b));
  expect_error<SplitError>(
      [&] { solve_in_batches(*find_solver("fista"), with_weights, sample.b, {.dims = "S"}); },
      "dims: h: expected a function whose parameters have no axes");
}

}  // namespace
}  // namespace palimpsest
