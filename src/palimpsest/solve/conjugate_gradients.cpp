// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/conjugate_gradients.hpp"

#include <limits>
#include <optional>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"
#include "palimpsest/solve/frame/types.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"

namespace palimpsest {
namespace {

const SolverType& cg_type() { return *find_solver("conjugate_gradients"); }

}  // namespace

Problem cg_problem(const NamedLinop& A, const TensorType& b, const CgOptions& options) {
  Problem p(b);
  p.set("A", A).set("refresh", options.refresh);
  if (options.M) p.set("M", *options.M);
  return p;
}

ConjugateGradients::ConjugateGradients(const NamedLinop& A, const TensorType& b,
                                       const CgOptions& options)
    : Solver(cg_type(), cg_problem(A, b, options), solve_options(options)) {}

SolveResult conjugate_gradients(const NamedLinop& A, const Tensor& b, const CgOptions& options) {
  return ConjugateGradients(A, type_of(b), options).run(b);
}

SolveResult cg_normal(const NamedLinop& A, const Tensor& b, const CgOptions& options) {
  const NamedLinop adjoint = A.H();
  std::optional<ConfigScope> scope;
  if (const auto budget = options.budget_bytes ? options.budget_bytes : config().budget) {
    // One lane: steps side by side would need memory of their own.
    constexpr index_t kOneLane = std::numeric_limits<index_t>::max();
    scope.emplace(ConfigOverrides{.budget = budget, .parallel_grain = kOneLane});
  }
  const Tensor right_hand_side = adjoint(b);
  // Only this one application was needed: its workspace would stay beside the solver's.
  compiled_function(adjoint, type_of(b)).free();
  return conjugate_gradients(A.N(), right_hand_side, options);
}

SolvePlan plan_conjugate_gradients(const NamedLinop& A, const TensorType& b,
                                   const CgOptions& options) {
  return ConjugateGradients(A, b, options).plan();
}

index_t smallest_cg_budget(const NamedLinop& A, const TensorType& b, const CgOptions& options) {
  return smallest_solve_budget(cg_type(), cg_problem(A, b, options), solve_options(options));
}

}  // namespace palimpsest
