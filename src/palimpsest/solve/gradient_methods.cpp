// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/gradient_methods.hpp"

#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/solvers/proximal.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

Problem first_order_problem(const SolverType& type, const NamedLinop& A, const Prox* h,
                            const TensorType& b, const ProximalOptions& options) {
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
  p.set("restart", options.restart);
  const bool keeps = options.monotone || options.backtrack;
  if (keeps && type.name == "pogm") {
    throw ValueError("[pogm] " + std::string(options.monotone ? "monotone" : "backtrack") +
                     ": got true, expected false. Try fista");
  }
  p.set("monotone", options.monotone).set("backtrack", options.backtrack);
  const RecordObjective objective = options.objective;
  p.set("objective",
        objective == RecordObjective::always || (keeps && objective == RecordObjective::automatic));
  // Only if the iterates depend on it: a checkpoint must be continued with the same value.
  if (type.name == "pogm" || options.average > 1) {
    p.set("max_iterations", options.max_iterations);
  }
  return p;
}

SolveResult solved_by(const SolverType& type, const NamedLinop& A, const Prox* h, const Tensor& b,
                      const ProximalOptions& options) {
  return solve(type, first_order_problem(type, A, h, type_of(b), options), b,
               solve_options(options));
}

}  // namespace

SolveResult ista(const NamedLinop& A, const Prox& h, const Tensor& b,
                 const ProximalOptions& options) {
  return solved_by(*find_solver("ista"), A, &h, b, options);
}
SolveResult fista(const NamedLinop& A, const Prox& h, const Tensor& b,
                  const ProximalOptions& options) {
  return solved_by(*find_solver("fista"), A, &h, b, options);
}
SolveResult pogm(const NamedLinop& A, const Prox& h, const Tensor& b,
                 const ProximalOptions& options) {
  return solved_by(*find_solver("pogm"), A, &h, b, options);
}
SolveResult gradient_descent(const NamedLinop& A, const Tensor& b, const ProximalOptions& options) {
  return solved_by(*find_solver("gradient_descent"), A, nullptr, b, options);
}
SolveResult nesterov(const NamedLinop& A, const Tensor& b, const ProximalOptions& options) {
  return solved_by(*find_solver("nesterov"), A, nullptr, b, options);
}

SolvePlan plan_fista(const NamedLinop& A, const Prox& h, const TensorType& b,
                     const ProximalOptions& options) {
  return plan_solve(*find_solver("fista"),
                    first_order_problem(*find_solver("fista"), A, &h, b, options),
                    solve_options(options));
}

}  // namespace palimpsest
