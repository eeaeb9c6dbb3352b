// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/objective.hpp"

#include <optional>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/solve/frame/planned.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/parts.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"
#include "palimpsest/tensor/placeholder.hpp"

namespace palimpsest {
namespace {

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

RightHandSide::RightHandSide(const Objective& f, const TensorType& b, std::optional<index_t> budget)
    : adjoint_(f.W ? Chain(*f.W, f.A.H()) : f.A.H()), data_(b), is_limited_(budget.has_value()) {
  const ConfigScope scope(in_one_lane());
  split_ = split_to_budget(adjoint_, b, budget.value_or(kNoLimit));
  type_ = adjoint_(make_input(b, "b")).type();
  for (const Quadratic& q : f.quadratics) {
    if (!q.c || q.lambda == 0) continue;
    const Variable x = make_input(type_, "x");
    const Extents expected = (q.L ? (*q.L)(x) : x).type().shape;
    if (q.c->shape() != expected) {
      throw ShapeError("[minimize] c: got shape " + to_string(q.c->shape()) + ", expected " +
                       to_string(expected));
    }
    const Variable sum = make_input(type_, "sum"), c = make_input(type_of(*q.c), "c");
    const Variable next = sum + (q.L ? q.L->H()(c) : c) * q.lambda;
    targets_.push_back({function({In(sum), In(c)}, {Out(next)}), *q.c});
  }
}

index_t RightHandSide::smallest_budget() const {
  const ConfigScope scope(in_one_lane());
  return std::max(palimpsest::smallest_budget(adjoint_, data_), targets_bytes());
}

Tensor RightHandSide::operator()(const Tensor& b) {
  if (is_planning()) return placeholder(type_.dtype, type_.shape, type_.device);
  const ConfigScope scope(in_one_lane());
  Tensor result = split_->op(b);
  // Only this one application is needed: its workspace would stay beside the solver's.
  compiled_function(split_->op, data_).free();
  for (Target& target : targets_) {
    result = target.add(result, target.c);
    target.add.free();
  }
  targets_.clear();
  return result;
}

ConfigOverrides RightHandSide::in_one_lane() const {
  if (!is_limited_) return {};
  return config_of_budget(0);
}

index_t RightHandSide::targets_bytes() const {
  index_t most = 0;
  for (const Target& target : targets_) {
    most = std::max(most, target.add.plan(std::vector{type_, type_of(target.c)}).peak_bytes);
  }
  return most > 0 ? bytes() + most : 0;
}

Problem& add_terms(Problem& p, const Objective& f) {
  for (std::size_t i = 0; i < f.terms.size(); ++i) {
    const auto& [g, K, d] = f.terms[i];
    const std::string number = std::to_string(i);
    p.set("K" + number, K ? bound_operator(*K, f.A.ishape()) : Identity(f.A.ishape()));
    p.set("g" + number, g);
    if (d) p.set("d" + number, *d);
  }
  p.set("terms", static_cast<index_t>(f.terms.size()));
  if (f.h) p.set("h", *f.h);
  return p;
}

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
  return add_terms(p, f);
}

Objective simplified(Objective f) {
  if (f.h || f.terms.size() != 1 || f.terms[0].K || f.terms[0].d) return f;
  f.h = f.terms[0].g;
  f.terms.clear();
  return f;
}

Objective h_as_term(Objective f) {
  if (f.h) f.terms.push_back({.g = *f.h});
  f.h.reset();
  return f;
}

namespace {

Method method_of(const Objective& f, Method wanted) {
  if (wanted != Method::automatic) return wanted;
  if (f.terms.empty()) return f.h ? Method::fista : Method::cg;
  return Method::condat_vu;
}

Problem minimize_problem(const Objective& f, const TensorType& b, const MinimizeOptions& options) {
  const bool is_admm = options.method == Method::admm;
  Problem p = objective_problem(is_admm ? h_as_term(f) : f, b);
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

// The solver of minimize(), with its problem and options. cg solves a linear system.
struct Chosen {
  const SolverType& type;
  Problem problem;
  SolveOptions options;
  std::optional<RightHandSide> rhs;
};

Chosen chosen(const Objective& objective, const TensorType& b, const MinimizeOptions& options) {
  const Objective f = simplified(objective);
  check_objective(f);
  const Method method = method_of(f, options.method);
  SolveOptions how = solve_options(options);
  if (method != Method::cg) {
    return {solver_of(f, method), minimize_problem(f, b, options), how, {}};
  }
  if (!f.terms.empty() || f.h) {
    throw ValueError("[minimize] method: cg takes no terms and no h, expected another");
  }
  const auto budget = options.budget_bytes ? options.budget_bytes : config().budget;
  RightHandSide rhs(f, b, budget);
  if (budget) how.budget_bytes = std::max<index_t>(*budget - rhs.bytes(), 0);
  Problem problem = cg_problem(hessian(f), rhs.type(), {});
  return {*find_solver("conjugate_gradients"), std::move(problem), how, std::move(rhs)};
}

}  // namespace

void refuse_budget(std::string_view who, index_t budget, index_t smallest, index_t state) {
  throw BudgetError("[" + std::string(who) + "] nothing fits into the budget: got " +
                    std::to_string(budget) + " bytes, the smallest budget found is " +
                    std::to_string(smallest) + " bytes. Try a budget of " +
                    std::to_string(smallest) + ". The state takes " + std::to_string(state) +
                    " of them for any tiles");
}

namespace {

// Names the smallest budget of all that minimize() does where one of its parts finds none.
template <class Work>
auto within_budget(const Objective& f, const TensorType& b, const MinimizeOptions& options,
                   Work work) {
  try {
    return work();
  } catch (const BudgetError&) {
    const Objective g = simplified(f);
    if (method_of(g, options.method) != Method::cg) throw;
    const index_t budget = options.budget_bytes.value_or(config().budget.value_or(kNoLimit));
    const ConfigScope scope({.budget = kNoLimit});
    MinimizeOptions unlimited = options;
    unlimited.budget_bytes.reset();
    const index_t state = plan_minimize(f, b, unlimited).state_bytes;
    refuse_budget("minimize", budget, smallest_minimize_budget(f, b, options), state);
  }
}

}  // namespace

SolveResult minimize(const Objective& objective, const Tensor& b, const MinimizeOptions& options) {
  return within_budget(objective, type_of(b), options, [&] {
    Chosen run = chosen(objective, type_of(b), options);
    if (!run.rhs) return solve(run.type, run.problem, b, run.options);
    SolveResult result = solve(run.type, run.problem, (*run.rhs)(b), run.options);
    add_bytes_besides(result, run.rhs->bytes(), run.rhs->peak_bytes());
    return result;
  });
}

SolvePlan plan_minimize(const Objective& objective, const TensorType& b,
                        const MinimizeOptions& options) {
  return within_budget(objective, b, options, [&] {
    const Chosen run = chosen(objective, b, options);
    SolvePlan plan = plan_solve(run.type, run.problem, run.options);
    if (!run.rhs) return plan;
    plan.state_bytes += run.rhs->bytes();
    plan.peak_bytes = std::max(plan.peak_bytes + run.rhs->bytes(), run.rhs->peak_bytes());
    return plan;
  });
}

index_t smallest_minimize_budget(const Objective& objective, const TensorType& b,
                                 const MinimizeOptions& options) {
  const ConfigScope scope({.budget = kNoLimit});
  MinimizeOptions unlimited = options;
  unlimited.budget_bytes.reset();
  const Chosen run = chosen(objective, b, unlimited);
  const index_t solve = smallest_solve_budget(run.type, run.problem, run.options);
  return run.rhs ? std::max(run.rhs->smallest_budget(), run.rhs->bytes() + solve) : solve;
}

SolveResult condat_vu(const Objective& f, const Tensor& b, const MinimizeOptions& options) {
  MinimizeOptions with = options;
  with.method = Method::condat_vu;
  return solve(*find_solver("condat_vu"), minimize_problem(f, type_of(b), with), b,
               solve_options(with));
}

SolveResult admm(const Objective& f, const Tensor& b, const AdmmOptions& o) {
  Problem p = objective_problem(h_as_term(f), type_of(b));
  if (o.L) p.set("L", *o.L);
  if (o.rho) p.set("rho", *o.rho);
  p.set("relaxation", o.relaxation).set("inner", o.inner).set("adapt", o.adapt);
  p.set("inner_tolerance", o.inner_tolerance);
  p.set("objective", o.objective == RecordObjective::always);
  return solve(*find_solver("admm"), p, b, solve_options(o));
}

SolveResult pdhg(const Prox& f, const Objective& rest, const Tensor& b,
                 const PdhgOptions& options) {
  if (rest.W) throw ValueError("[pdhg] W: got one, expected none. Try a weighted f");
  if (!rest.quadratics.empty()) {
    throw ValueError("[pdhg] quadratics: got " + std::to_string(rest.quadratics.size()) +
                     ", expected none. Try terms with SquaredL2");
  }
  Problem p = objective_problem(rest, type_of(b));
  p.set("f", f).set("ratio", options.ratio).set("strong", options.strong);
  p.set("adapt", options.adapt).set("objective", options.objective == RecordObjective::always);
  return solve(*find_solver("pdhg"), p, b, solve_options(options));
}

}  // namespace palimpsest
