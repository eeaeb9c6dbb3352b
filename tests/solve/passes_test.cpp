// SPDX-License-Identifier: Apache-2.0
// The number of passes over vectors of the length of x in one iteration, without the operators;
// read from the compiled steps. Sums of so long vectors are computed where their operands are.
#include <gtest/gtest.h>

#include <algorithm>

#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"

namespace palimpsest {
namespace {

constexpr index_t kRows = 256, kN = kRows * kRows, kData = 16;

index_t elements(const Variable& v) {
  index_t n = 1;
  for (const index_t extent : v.type().shape) n *= extent;
  return n;
}

// The matrices of this test have more elements than vectors and gradients; differences are stencils
// and the sums of their results.
bool applies_operator(const Apply& node, index_t n) {
  const auto is_stencil = [](const Apply& step) {
    return step.defined() && step.op().name().starts_with("Stencil");
  };
  const auto inputs = node.inputs();
  return is_stencil(node) ||
         std::all_of(inputs.begin(), inputs.end(),
                     [&](const Variable& v) { return is_stencil(v.owner()); }) ||
         std::any_of(inputs.begin(), inputs.end(),
                     [n](const Variable& v) { return elements(v) > 3 * n; });
}

// For vectors of n elements.
int passes(const SolvePlan& plan, index_t n = kN) {
  const auto is_long = [n](const Variable& v) { return elements(v) >= n; };
  int count = 0;
  for (const PlannedStep& step : plan.step.steps) {
    const std::vector<Variable> outputs = step.node.outputs();
    const bool is_pass =
        std::any_of(step.node.inputs().begin(), step.node.inputs().end(), is_long) ||
        std::any_of(outputs.begin(), outputs.end(), is_long);
    const bool is_memory_only = step.node.op().name().starts_with("Alloc");
    count += is_pass && !is_memory_only && !applies_operator(step.node, n) ? 1 : 0;
  }
  return count;
}

std::string steps_of(const SolvePlan& plan) {
  std::string text;
  for (const PlannedStep& step : plan.step.steps) {
    text += step.node.op().name() + "{" + step.node.op().parameters() + "}\n";
  }
  return text;
}

struct Passes : ::testing::Test {
  const NamedLinop A =
      Dense(Tensor::random_normal({kData, kRows, kRows}, DType::complex64, {1, 0}), "M Y X,Y X->M");
  const TensorType x{DType::complex64, {kRows, kRows}, {}}, b{DType::complex64, {kData}, {}};

  static void expect(const SolvePlan& plan, int count) {
    EXPECT_EQ(passes(plan), count) << steps_of(plan);
  }
  SolvePlan plan(const char* solver, const Objective& f, const char* flag = nullptr) const {
    Problem p = objective_problem(f, b);
    if (flag != nullptr) p.set(flag, true);
    return plan_solve(*find_solver(solver), p.set("L", 4.0));
  }
  SolvePlan plan(const char* solver, const NamedLinop& of, const TensorType& data) const {
    return plan_solve(*find_solver(solver), Problem(data).set("A", of));
  }
};

TEST_F(Passes, ConjugateGradientsTakeThree) { expect(plan_conjugate_gradients(A.N(), x), 3); }

TEST_F(Passes, ProximalGradientsTakeTwo) {
  const FistaOptions plain{.L = 4.0, .restart = false};
  expect(plan_fista(A, L1(0.1), b, plain), 2);
  expect(plan("ista", {.A = A, .h = L1(0.1)}), 2);
}

// Momentum restarts or not: this is known only after the new iterate.
TEST_F(Passes, ARestartTakesOneMore) { expect(plan_fista(A, L1(0.1), b, {.L = 4.0}), 3); }

// A pass to 2 x' - x, one for each dual variable with its projection and its change, and one that
// adds up their adjoints, stores the new values and computes the residual.
TEST_F(Passes, PrimalDualStepsTakeTwoAndOneForEachTerm) {
  const Term tv = tv_term(0.1, "Y X"), sparse{.g = L1(0.1)};
  expect(plan("condat_vu", {.A = A, .terms = {tv}}), 3);
  expect(plan("condat_vu", {.A = A, .terms = {sparse}}), 3);
  expect(plan("condat_vu", {.A = A, .terms = {tv, sparse}}), 4);
  // The guard of the argument comes before the prox.
  expect(plan("condat_vu", {.A = A, .terms = {tv}, .h = NonNegative()}), 4);
}

// A Lanczos vector is divided by its length before the operator takes it.
TEST_F(Passes, LanczosStepsTakeTwoOrFour) {
  expect(plan("lsqr", A, b), 2);
  expect(plan("lsmr", A, b), 2);
  expect(plan("minres", A.N(), x), 4);
}

TEST(PassesOverLongVectors, TakeTheirSumsUnasked) {
  constexpr index_t rows = 256;
  const NamedLinop A =
      Dense(Tensor::random_normal({kData, rows, rows}, DType::float32, {1, 0}), "M Y X,Y X->M");
  const TensorType x{DType::float32, {rows, rows}, {}}, b{DType::float32, {kData}, {}};
  const SolvePlan plan = plan_conjugate_gradients(A.N(), x);
  EXPECT_EQ(passes(plan, rows * rows), 3) << steps_of(plan);
  EXPECT_EQ(passes(plan_fista(A, L1(0.1), b, {.L = 4.0, .restart = false}), rows * rows), 2);
  const Tensor data = Tensor::random_normal({rows, rows}, DType::float32, {2, 0});
  A.N();
  const MemoryScope scope;
  const SolveResult result = conjugate_gradients(A.N(), data, {.max_iterations = 3});
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  EXPECT_EQ(result.peak_bytes, plan.peak_bytes);
}

}  // namespace
}  // namespace palimpsest
