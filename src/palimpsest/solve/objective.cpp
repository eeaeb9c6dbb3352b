// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/objective.hpp"

#include <cmath>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/frame/types.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"

namespace palimpsest {
namespace {

std::string numbered_name(const char* base, std::size_t i) { return base + std::to_string(i); }

void check_objective(const Objective& f) {
  for (const Quadratic& q : f.quadratics) {
    if (q.lambda >= 0 && std::isfinite(q.lambda)) continue;
    throw ValueError("[minimize] lambda: got " + Attribute(q.lambda).str() +
                     ", expected a number that is not negative");
  }
}

// The sum of the normal operators of the data term and the quadratics.
NamedLinop hessian(const Objective& f) {
  NamedLinop N = f.W ? f.A.normal(*f.W) : f.A.N();
  for (const Quadratic& q : f.quadratics) {
    if (q.lambda == 0) continue;
    const NamedLinop L = q.L ? *q.L : Identity(f.A.ishape());
    N = N + q.lambda * L.N();
  }
  return N;
}

}  // namespace

Problem objective_problem(const Objective& f, const TensorType& b) {
  check_objective(f);
  Problem p(b);
  p.set("A", f.A).set("N", hessian(f));
  if (f.W) p.set("W", *f.W);
  std::size_t n = 0;
  for (const Quadratic& q : f.quadratics) {
    if (!q.c || q.lambda == 0) continue;
    const std::string i = std::to_string(n++);
    p.set("L" + i, q.L ? *q.L : Identity(f.A.ishape()));
    p.set("lambda" + i, q.lambda).set("c" + i, *q.c);
  }
  for (std::size_t i = 0; i < f.terms.size(); ++i) {
    const Term& term = f.terms[i];
    p.set(numbered_name("K", i), term.K ? *term.K : Identity(f.A.ishape()));
    p.set(numbered_name("g", i), term.g);
    if (term.d) p.set(numbered_name("d", i), *term.d);
  }
  p.set("terms", static_cast<index_t>(f.terms.size()));
  if (f.h) p.set("h", *f.h);
  return p;
}

namespace {

Method method_of(const Objective& f, Method wanted) {
  if (wanted != Method::automatic) return wanted;
  if (f.terms.empty()) return f.h ? Method::fista : Method::cg;
  return Method::condat_vu;
}

// One term without K, and no h, is h.
Objective simplified(Objective f) {
  if (f.h || f.terms.size() != 1 || f.terms[0].K || f.terms[0].d) return f;
  f.h = f.terms[0].g;
  f.terms.clear();
  return f;
}

// h as a further term.
Objective without_h(Objective f) {
  if (f.h) f.terms.push_back({.g = *f.h});
  f.h.reset();
  return f;
}

Problem minimize_problem(const Objective& f, const TensorType& b, const MinimizeOptions& options) {
  const bool is_admm = options.method == Method::admm;
  Problem p = objective_problem(is_admm ? without_h(f) : f, b);
  if (options.L) p.set("L", *options.L);
  p.set("balance", options.balance).set("restart", options.restart);
  p.set("objective", options.objective == RecordObjective::always);
  if (options.rho) p.set("rho", *options.rho);
  p.set("relaxation", options.relaxation).set("inner", options.inner);
  p.set("inner_tolerance", options.inner_tolerance).set("adapt", options.adapt);
  return p;
}

const SolverType& solver_of(const Objective& f, Method method) {
  const char* name = method == Method::fista       ? "fista"
                     : method == Method::condat_vu ? "condat_vu"
                                                   : "admm";
  if (method == Method::fista && !f.terms.empty()) {
    throw ValueError("[minimize] method: fista takes no terms, expected condat_vu or admm");
  }
  return *find_solver(name);
}

// A^H W b + sum of lambda_j L_j^H c_j.
Tensor right_hand_side(const Objective& f, const Tensor& b) {
  const Variable data = make_input(type_of(b), "b");
  Variable rhs = f.A.H()(f.W ? (*f.W)(data) : data);
  for (const Quadratic& q : f.quadratics) {
    if (!q.c || q.lambda == 0) continue;
    const Variable c = constant(*q.c);
    rhs = rhs + (q.L ? q.L->H()(c) : c) * q.lambda;
  }
  return function({In(data)}, {Out(rhs)}, {.name = "right-hand side"})(b);
}

// What minimize() solves, and by what. cg solves a linear system, of the right-hand side.
struct Chosen {
  Objective objective;
  Method method;
  const SolverType& type;
  Problem problem;
};
Chosen chosen(const Objective& objective, const TensorType& b, const MinimizeOptions& options) {
  const Objective f = simplified(objective);
  check_objective(f);
  const Method method = method_of(f, options.method);
  if (method != Method::cg) {
    return {f, method, solver_of(f, method), minimize_problem(f, b, options)};
  }
  if (!f.terms.empty() || f.h) {
    throw ValueError("[minimize] method: cg takes no terms and no h, expected another");
  }
  const TensorType rhs = f.A.H()(make_input(b, "b")).type();
  return {f, method, *find_solver("conjugate_gradients"), cg_problem(hessian(f), rhs, {})};
}

}  // namespace

SolveResult minimize(const Objective& objective, const Tensor& b, const MinimizeOptions& options) {
  const Chosen run = chosen(objective, type_of(b), options);
  const bool is_cg = run.method == Method::cg;
  return solve(run.type, run.problem, is_cg ? right_hand_side(run.objective, b) : b,
               solve_options(options));
}

SolvePlan plan_minimize(const Objective& objective, const TensorType& b,
                        const MinimizeOptions& options) {
  const Chosen run = chosen(objective, b, options);
  return plan_solve(run.type, run.problem, solve_options(options));
}

index_t smallest_minimize_budget(const Objective& objective, const TensorType& b,
                                 const MinimizeOptions& options) {
  const Chosen run = chosen(objective, b, options);
  return smallest_solve_budget(run.type, run.problem, solve_options(options));
}

SolveResult condat_vu(const Objective& f, const Tensor& b, const MinimizeOptions& options) {
  MinimizeOptions with = options;
  with.method = Method::condat_vu;
  return solve(*find_solver("condat_vu"), minimize_problem(f, type_of(b), with), b,
               solve_options(with));
}

SolveResult admm(const Objective& f, const Tensor& b, const AdmmOptions& o) {
  Problem p = objective_problem(without_h(f), type_of(b));
  if (o.L) p.set("L", *o.L);
  if (o.rho) p.set("rho", *o.rho);
  p.set("relaxation", o.relaxation).set("inner", o.inner).set("adapt", o.adapt);
  p.set("inner_tolerance", o.inner_tolerance);
  p.set("objective", o.objective == RecordObjective::always);
  return solve(*find_solver("admm"), p, b, solve_options(o));
}

SolveResult pdhg(const Prox& f, const Objective& rest, const Tensor& b,
                 const PdhgOptions& options) {
  Problem p = objective_problem(rest, type_of(b));
  p.set("f", f).set("ratio", options.ratio).set("strong", options.strong);
  p.set("adapt", options.adapt).set("objective", options.objective == RecordObjective::always);
  return solve(*find_solver("pdhg"), p, b, solve_options(options));
}

}  // namespace palimpsest
