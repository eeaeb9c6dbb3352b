// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/gradient_methods.hpp"

#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/solvers/proximal.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

template <class Options>
Problem first_order_problem(const SolverType& type, const NamedLinop& A, const Prox* h,
                            const TensorType& b, const Options& options) {
  Problem p(b);
  p.set("A", A);
  p.set("N", A.N());
  if (h != nullptr) p.set("h", *h);
  if (options.L) p.set("L", *options.L);
  check_lipschitz(p, type.name);
  if (options.average < 1) {
    throw ValueError("[" + std::string(type.name) + "] average: got " +
                     std::to_string(options.average) + ", expected at least 1");
  }
  p.set("average", options.average);
  if constexpr (requires { options.restart; }) p.set("restart", options.restart);
  bool is_recorded = options.objective == RecordObjective::always;
  if constexpr (requires { options.monotone; }) {
    p.set("monotone", options.monotone).set("backtrack", options.backtrack);
    is_recorded |=
        (options.monotone || options.backtrack) && options.objective == RecordObjective::automatic;
  }
  p.set("objective", is_recorded);
  // Only if the iterates depend on it: a checkpoint must be continued with the same value.
  if (type.name == "pogm" || options.average > 1) {
    p.set("max_iterations", options.max_iterations);
  }
  return p;
}

template <class Options>
SolveResult solved_by(const SolverType& type, const NamedLinop& A, const Prox* h, const Tensor& b,
                      const Options& options) {
  return solve(type, first_order_problem(type, A, h, type_of(b), options), b,
               solve_options(options));
}

}  // namespace

SolveResult ista(const NamedLinop& A, const Prox& h, const Tensor& b, const IstaOptions& options) {
  return solved_by(*find_solver("ista"), A, &h, b, options);
}
SolveResult fista(const NamedLinop& A, const Prox& h, const Tensor& b,
                  const FistaOptions& options) {
  return solved_by(*find_solver("fista"), A, &h, b, options);
}
SolveResult pogm(const NamedLinop& A, const Prox& h, const Tensor& b, const PogmOptions& options) {
  return solved_by(*find_solver("pogm"), A, &h, b, options);
}
SolveResult gradient_descent(const NamedLinop& A, const Tensor& b, const IstaOptions& options) {
  return solved_by(*find_solver("gradient_descent"), A, nullptr, b, options);
}
SolveResult nesterov(const NamedLinop& A, const Tensor& b, const FistaOptions& options) {
  return solved_by(*find_solver("nesterov"), A, nullptr, b, options);
}

SolvePlan plan_fista(const NamedLinop& A, const Prox& h, const TensorType& b,
                     const FistaOptions& options) {
  return plan_solve(*find_solver("fista"),
                    first_order_problem(*find_solver("fista"), A, &h, b, options),
                    solve_options(options));
}

}  // namespace palimpsest
