// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/conjugate_gradients.hpp"

#include <optional>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
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
  const auto budget = options.budget_bytes ? options.budget_bytes : config().budget;
  CgOptions beside = options;
  std::optional<RightHandSide> rhs;
  try {
    rhs.emplace(Objective{.A = A}, type_of(b), budget);
    if (budget) beside.budget_bytes = std::max<index_t>(*budget - rhs->bytes(), 0);
    SolveResult result = conjugate_gradients(A.N(), (*rhs)(b), beside);
    add_bytes_besides(result, rhs->bytes(), rhs->peak_bytes());
    return result;
  } catch (const BudgetError&) {
    if (!budget) throw;
    const ConfigScope scope({.budget = kNoLimit});
    CgOptions unlimited = options;
    unlimited.budget_bytes.reset();
    const RightHandSide whole(Objective{.A = A}, type_of(b), {});
    const index_t least =
        std::max(whole.smallest_budget(),
                 whole.bytes() + smallest_cg_budget(A.N(), whole.type(), unlimited));
    const index_t state =
        whole.bytes() + plan_conjugate_gradients(A.N(), whole.type(), unlimited).state_bytes;
    refuse_budget("cg_normal", *budget, least, state);
  }
}

SolvePlan plan_conjugate_gradients(const NamedLinop& A, const TensorType& b,
                                   const CgOptions& options) {
  return ConjugateGradients(A, b, options).plan();
}

index_t smallest_cg_budget(const NamedLinop& A, const TensorType& b, const CgOptions& options) {
  return smallest_solve_budget(cg_type(), cg_problem(A, b, options), solve_options(options));
}

}  // namespace palimpsest
