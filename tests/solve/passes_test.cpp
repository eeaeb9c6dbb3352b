// SPDX-License-Identifier: Apache-2.0
// Sweeps over vectors of the length of x in one iteration, apart from the operators: read from the
// compiled steps, with sums taken where their operands are made.
#include <gtest/gtest.h>

#include <algorithm>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/prox/norms.hpp"

namespace palimpsest {
namespace {

constexpr index_t kN = 4096;

index_t elements(const Variable& v) {
  index_t n = 1;
  for (const index_t extent : v.type().shape) n *= extent;
  return n;
}

// The matrices of this page have more elements than vectors.
bool applies_operator(const Apply& node) {
  return std::any_of(node.inputs().begin(), node.inputs().end(),
                     [](const Variable& v) { return elements(v) > kN; });
}

int passes(const SolvePlan& plan) {
  const auto is_long = [](const Variable& v) { return elements(v) == kN; };
  int n = 0;
  for (const PlannedStep& step : plan.step.steps) {
    const std::vector<Variable> outputs = step.node.outputs();
    const bool is_pass =
        std::any_of(step.node.inputs().begin(), step.node.inputs().end(), is_long) ||
        std::any_of(outputs.begin(), outputs.end(), is_long);
    n += is_pass && !applies_operator(step.node) ? 1 : 0;
  }
  return n;
}

struct Passes : ::testing::Test {
  const ConfigScope with_sums{{.rewrites_including = std::vector<std::string>{"fuse_sums"}}};
  const NamedLinop A = Dense(Tensor::random_normal({16, kN}, DType::float32, {1, 0}), "M N,N->M");
  const TensorType x{DType::float32, {kN}, {}}, b{DType::float32, {16}, {}};
};

TEST_F(Passes, ConjugateGradientsTakeThree) {
  EXPECT_EQ(passes(plan_conjugate_gradients(A.N(), x)), 3);
}

TEST_F(Passes, ProximalGradientsTakeTwo) {
  const ProximalOptions plain{.L = 4.0, .restart = false};
  EXPECT_EQ(passes(plan_fista(A, L1(0.1), b, plain)), 2);
  Problem p(b);
  p.set("A", A).set("N", A.N()).set("h", L1(0.1)).set("L", 4.0);
  EXPECT_EQ(passes(plan_solve(*find_solver("ista"), p)), 2);
}

// Whether momentum starts anew is known only after the new iterate.
TEST_F(Passes, ARestartTakesOneMore) {
  EXPECT_EQ(passes(plan_fista(A, L1(0.1), b, {.L = 4.0})), 3);
}

}  // namespace
}  // namespace palimpsest
