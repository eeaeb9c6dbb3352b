// SPDX-License-Identifier: Apache-2.0
// condat_vu and pdhg. The residuals of the optimality conditions use |K| |u' - u| for
// |K^H (u' - u)|, and |K| |x' - x| for |K (x' - x)|, where the exact ones would take another
// application or another vector. Steps that adapt keep these vectors.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/linop/split/budget_search.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/solvers/proximal.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

std::string of_term(const char* base, index_t i) { return base + std::to_string(i); }
index_t term_count(const Problem& p) { return p.integer("terms", 0); }

bool adapts(const Problem& p) { return p.flag("adapt"); }

Variable shifted(const Problem& p, const std::string& shift, const Variable& image) {
  if (!p.has_attr(shift)) return image;
  return image - constant(p.attr(shift).as_tensor()).astype(image.dtype());
}

// top / below; 0 for 0 / 0, and 1 where only the top is not 0.
double relative(double top, double below) { return top == 0 ? 0 : below > 0 ? top / below : 1; }
Variable relative(const Variable& top, const Variable& below) {
  return ops::where(ops::gt(below, 0.0), top / below, ops::gt(top, 0.0).astype(top.dtype()));
}

// One dual variable in one step: its names in state and problem, K (2 x' - x) with and without its
// shift, and its step size.
struct DualStep {
  std::string u, g, kept;  // kept: the state that holds K x where steps adapt
  Variable image, distance, sigma;
};

DualStep step_of_term(const Problem& p, Scope& s, index_t i, const Variable& ahead,
                      const Variable& sigma) {
  const Variable image = s.apply(of_term("K", i), ahead);
  return {.u = of_term("u", i),
          .g = of_term("g", i),
          .kept = of_term("Kx", i),
          .image = image,
          .distance = shifted(p, of_term("d", i), image),
          .sigma = sigma};
}

// The squares of what adapting compares: |(u - u') / sigma - K (x - x')| of all dual variables, the
// size of the K x', and the largest relative residual.
struct DualResidual {
  Variable top, below, relative;
};

// u' = prox_{sigma g*}(u + sigma distance) with the numbers that the test needs. Where steps adapt,
// K x' = (image + K x) / 2 is kept, and its part of the residual is added.
Variable dual_step(const Problem& p, Scope& s, const DualStep& step, DualResidual& dual) {
  const Space U = p.argument_of(step.g);
  const Variable u = s[step.u], &sigma = step.sigma;
  const Variable ahead = ops::fma(U.spread(sigma), step.distance, u);
  const Variable next = s.conjugate_prox(step.g, ahead, sigma);
  s.set(step.u, next);
  const Variable size = U.norm2(next);
  s.number(step.u + ".change", U.norm2(next - u));
  s.number(step.u + ".size", size);
  if (!adapts(p)) {
    s.number(step.u + ".image", U.norm2(step.image));
    return next;
  }
  const Variable image = (step.image + s[step.kept]) * 0.5;
  const Variable off = (u - next) * U.spread(ops::reciprocal(sigma)) + (image - s[step.kept]);
  s.set(step.kept, image);
  const Variable image_size = U.norm2(image);
  s.number(step.u + ".image", image_size);
  const Variable below = ops::maximum(ops::sqrt(size) / sigma, ops::sqrt(image_size));
  const Variable top = U.norm2(off);
  const auto sum = [](const Variable& a, const Variable& b) { return a.defined() ? a + b : b; };
  const Variable own = relative(ops::sqrt(top), below);
  dual.top = sum(dual.top, top);
  dual.below = sum(dual.below, image_size);
  dual.relative = dual.relative.defined() ? ops::maximum(dual.relative, own) : own;
  return next;
}

// x' = prox_{tau h}(x - tau slope), with the numbers that the test needs.
Variable primal_step(const Problem& p, Scope& s, const Variable& slope, const Variable& tau) {
  const Space& X = p.x();
  const Variable x = s["x"];
  const Variable v = ops::fma(X.spread(-tau), slope, x);
  s.guard(X.norm2(v));
  const Variable next = p.has_prox("h") ? s.prox("h", v, tau) : v;
  s.set("x", next);
  change_numbers(p, s, x, next);
  s.number("tau", tau);
  return next;
}

// |(u - u') / sigma| + |K| |x - x'| over max(|u'| / sigma, |K x'|).
double dual_residual(const Numbers& n, const std::string& name, const std::string& sigma,
                     double norm_K, double change) {
  const double step = n[sigma];
  const double top = std::sqrt(n[name + ".change"]) / step + norm_K * change;
  return relative(top,
                  std::max(std::sqrt(n[name + ".size"]) / step, std::sqrt(n[name + ".image"])));
}

// The variable whose residual is 1.5 times the other's gets the longer step: by 1 / (1 - alpha),
// where alpha is 1/2 at first and 0.95 times what it was after each change, so that the steps come
// to rest. The residuals are relative to sizes that do not depend on the steps.
struct Adaption {
  Variable factor;  // of the dual steps
  Variable alpha;
};
Adaption adaption(Scope& s, const Variable& primal, const Variable& dual) {
  constexpr double kImbalance = 1.5, kDecay = 0.95;
  const Variable alpha = s["alpha"], one = ops::full_like(alpha, 1.0), rest = 1.0 - alpha;
  const Variable is_primal = ops::gt(primal, dual * kImbalance);
  const Variable is_dual = ops::gt(dual, primal * kImbalance);
  const Variable factor =
      ops::where(is_primal, rest, ops::where(is_dual, ops::reciprocal(rest), one));
  return {factor, ops::where(ops::logical_or(is_primal, is_dual), alpha * kDecay, alpha)};
}

// The number "objective" where the problem asks for it, given what the smooth part is at x; one K
// of each term.
void terms_objective(const Problem& p, Scope& s, Variable value, const Variable& x) {
  if (p.has_prox("h")) value = value + s.value("h", x);
  for (index_t i = 0; i < term_count(p); ++i) {
    const Variable image = s.apply(of_term("K", i), x);
    value = value + s.value(of_term("g", i), shifted(p, of_term("d", i), image));
  }
  s.number("objective", value);
}

// -- condat_vu -----------------------------------------------------------------------------------

// x; c = A^H b - sum of K_i^H u_i, whose changes are what the test needs; u_i.
void declare_condat(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  declare_rhs(p, state);
  state.add("tau", p.numbers(), 1.0);
  for (index_t i = 0; i < term_count(p); ++i) {
    state.add(of_term("u", i), p.range_of(of_term("K", i)));
    state.add(of_term("sigma", i), p.numbers(), 1.0);
    state.add(of_term("norm", i), p.numbers(), 1.0);
    if (adapts(p)) state.add(of_term("Kx", i), p.range_of(of_term("K", i)));
  }
  if (!adapts(p)) return;
  state.add("L", p.numbers(), 1.0);
  state.add("alpha", p.numbers(), 0.5);
  state.add("size of rhs", p.numbers());
}

void set_up_condat(const Problem& p, Scope& s) {
  set_up_rhs(p, s);
  if (!adapts(p)) return;
  const Variable size = ops::sqrt(p.x().norm2(s.latest("rhs")));
  s.guard(size);  // so that the states get memory of their own, whatever K is
  s.set("size of rhs", size);
  for (index_t i = 0; p.has_x0() && i < term_count(p); ++i) {
    s.set(of_term("Kx", i), s.apply(of_term("K", i), s["x"]));
  }
}

// The steps of the dual variables by what the residuals say, and that of x by its condition.
void adapt_condat(const Problem& p, Scope& s, const Variable& primal, const Variable& dual) {
  const Adaption change = adaption(s, primal, dual);
  Variable sum = s["L"] * 0.5;
  for (index_t i = 0; i < term_count(p); ++i) {
    const Variable sigma = s[of_term("sigma", i)] * change.factor;
    s.set(of_term("sigma", i), sigma);
    sum = ops::fma(sigma, s[of_term("norm", i)], sum);
  }
  s.set("tau", 0.99 / sum);
  s.set("alpha", change.alpha);
}

// <x, A^H b> is <x, c'> + sum of Re <K_i x, u_i'>, where A^H b itself is kept nowhere.
void condat_objective(const Problem& p, Scope& s, const Variable& x) {
  if (!p.flag("objective")) return;
  const Space& X = p.x();
  Variable value = X.real_dot(x, applied_normal(p, s, x)) * 0.5 - X.real_dot(x, s.latest("rhs"));
  if (p.has_prox("h")) value = value + s.value("h", x);
  for (index_t i = 0; i < term_count(p); ++i) {
    const Variable image = s.apply(of_term("K", i), x);
    const Space range = p.range_of(of_term("K", i));
    value = value - range.real_dot(image, s.latest(of_term("u", i))) +
            s.value(of_term("g", i), shifted(p, of_term("d", i), image));
  }
  s.number("objective", value);
}

void step_condat(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable x = s["x"], tau = s["tau"];
  const Variable next = primal_step(p, s, gradient(p, s, x), tau);
  const Variable ahead = 2.0 * next - x;
  Variable moved;
  DualResidual residual;
  for (index_t i = 0; i < term_count(p); ++i) {
    const std::string K = of_term("K", i), u = of_term("u", i);
    const Variable sigma = s[of_term("sigma", i)];
    const Variable dual = dual_step(p, s, step_of_term(p, s, i, ahead, sigma), residual);
    const Variable back = s.adjoint(K, dual - s[u]);
    moved = moved.defined() ? moved + back : back;
    s.number(of_term("sigma", i), sigma);
    s.number(of_term("norm", i), s[of_term("norm", i)]);
  }
  Variable primal = X.norm2(x - next) / (tau * tau);
  if (moved.defined()) {
    s.set("rhs", s["rhs"] - moved.astype(X.type().dtype));
    primal = X.norm2((x - next) * X.spread(ops::reciprocal(tau)) + moved);
  }
  s.number("primal", primal);
  if (adapts(p)) {
    s.number("dual", residual.relative);
    adapt_condat(p, s, relative(ops::sqrt(primal), s["size of rhs"]),
                 relative(ops::sqrt(residual.top), ops::sqrt(residual.below)));
  }
  condat_objective(p, s, next);
}

Verdict judge_condat(const Problem& p, const Numbers& n) {
  const double change = std::sqrt(n["change"]);
  const double below = std::max(std::sqrt(n["size"]) / n["tau"], std::sqrt(n["rhs"]));
  Verdict verdict{.objective = recorded_objective(n), .change = change};
  verdict.numbers[0] = relative(std::sqrt(n["primal"]), below);
  for (index_t i = 0; i < term_count(p) && !n.has("dual"); ++i) {
    const double dual = dual_residual(n, of_term("u", i), of_term("sigma", i),
                                      std::sqrt(n[of_term("norm", i)]), change);
    verdict.numbers[1] = std::max(verdict.numbers[1], dual);
  }
  if (n.has("dual")) verdict.numbers[1] = n["dual"];
  verdict.residual = std::max(verdict.numbers[0], verdict.numbers[1]);
  return verdict;
}

// sigma_i = balance L / (I |K_i|^2), tau = 0.99 / (L / 2 + sum of sigma_i |K_i|^2).
Preparation prepare_condat(const Problem& p, std::uint64_t seed) {
  Preparation made = lipschitz(p, seed);
  const double L = made.values[0].second;
  const double balance = p.real("balance", 2.4);
  const auto terms = static_cast<double>(term_count(p));
  double sum = 0;
  for (index_t i = 0; i < term_count(p); ++i) {
    const OperatorNorm K = operator_norm2(p.op(of_term("K", i)), p.x().type(), seed);
    made.applications += K.applications;
    const double norm = K.value == 0 ? 1 : K.value, sigma = balance * L / (terms * norm);
    made.values.emplace_back(of_term("sigma", i), sigma);
    made.values.emplace_back(of_term("norm", i), norm);
    sum += sigma * norm;
  }
  made.values.emplace_back("tau", 0.99 / (L / 2 + sum));
  return made;
}

index_t prepare_condat_bytes(const Problem& p) {
  index_t bytes = lipschitz_bytes(p);
  for (index_t i = 0; i < term_count(p); ++i) {
    bytes = std::max(bytes, operator_norm2_bytes(p.op(of_term("K", i)), p.x().type()));
  }
  return bytes;
}

void check_condat(const Problem& p) {
  check_lipschitz(p, "condat_vu");
  const double balance = p.real("balance", 2.4);
  if (!(balance > 0) || !std::isfinite(balance)) {
    throw ValueError("[condat_vu] balance: got " + p.attr("balance").str() +
                     ", expected a positive number");
  }
  if (adapts(p) && term_count(p) == 0) {
    throw ValueError("[condat_vu] adapt: got no terms, expected at least one");
  }
}

constexpr SolverType kCondatVu{.name = "condat_vu",
                               .declare = declare_condat,
                               .prepare = prepare_condat,
                               .prepare_bytes = prepare_condat_bytes,
                               .setup = set_up_condat,
                               .step = step_condat,
                               .judge = judge_condat,
                               .check = check_condat};
PALIMPSEST_REGISTER_SOLVER(kCondatVu);

// -- pdhg ----------------------------------------------------------------------------------------

// Where steps adapt also A x and K_i x; "before" = (x_before - x) / tau - (slope before), of which
// the primal residual of the iteration before follows once the slope is there; "dual", that
// iteration's dual residual.
void declare_pdhg(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("y", p.b());
  state.add("tau", p.numbers(), 1.0);
  state.add("sigma", p.numbers(), 1.0);
  state.add("norm", p.numbers(), 1.0);
  for (index_t i = 0; i < term_count(p); ++i) {
    state.add(of_term("u", i), p.range_of(of_term("K", i)));
    if (adapts(p)) state.add(of_term("Kx", i), p.range_of(of_term("K", i)));
  }
  if (!adapts(p)) return;
  state.add("Ax", p.b());
  state.add("before", p.x());
  state.add("dual", p.numbers());
  state.add("alpha", p.numbers(), 0.5);
}

void set_up_pdhg(const Problem& p, Scope& s) {
  if (!adapts(p) || !p.has_x0()) return;
  s.guard(p.x().norm2(s["x"]));  // as in condat_vu
  s.set("Ax", s.apply("A", s["x"]));
  for (index_t i = 0; i < term_count(p); ++i) {
    s.set(of_term("Kx", i), s.apply(of_term("K", i), s["x"]));
  }
}

// The step sizes of this iteration, by the residuals of the one before.
struct Steps {
  Variable tau, sigma, alpha;
};
Steps steps_of_pdhg(const Problem& p, Scope& s, const Variable& slope, const Variable& size) {
  const Variable tau = s["tau"], sigma = s["sigma"];
  if (!adapts(p)) return {tau, sigma, {}};
  const Variable top = p.x().norm2(s["before"] + slope);
  const Variable primal = relative(ops::sqrt(top), ops::sqrt(size));
  const Adaption change = adaption(s, primal, s["dual"]);
  return {tau / change.factor, sigma * change.factor, change.alpha};
}

void step_pdhg(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable x = s["x"];
  Variable slope = s.adjoint("A", s["y"]), size = X.norm2(slope);  // of its summands
  for (index_t i = 0; i < term_count(p); ++i) {
    const Variable back = s.adjoint(of_term("K", i), s[of_term("u", i)]);
    slope = slope + back;
    size = size + X.norm2(back);
  }
  const Steps steps = steps_of_pdhg(p, s, slope, size);
  const Variable tau = steps.tau;
  Variable sigma = steps.sigma;
  DualResidual residual;
  const Variable next = primal_step(p, s, slope, tau);
  const double modulus = p.real("strong", 0);
  Variable ahead = 2.0 * next - x;
  if (modulus > 0) {  // steps that fit a strongly convex h, of which those of x go to 0
    const Variable theta = ops::reciprocal(ops::sqrt(1.0 + tau * (2 * modulus)));
    s.set("tau", tau * theta);
    sigma = sigma / theta;
    s.set("sigma", sigma);
    ahead = ops::fma(X.spread(theta), next - x, next);
  }
  const Variable image = s.apply("A", ahead);
  const DualStep data{
      .u = "y", .g = "f", .kept = "Ax", .image = image, .distance = image - s.b(), .sigma = sigma};
  dual_step(p, s, data, residual);
  for (index_t i = 0; i < term_count(p); ++i) {
    dual_step(p, s, step_of_term(p, s, i, ahead, sigma), residual);
  }
  if (adapts(p)) {
    s.set("tau", tau);
    s.set("sigma", sigma);
    s.set("alpha", steps.alpha);
    s.set("dual", relative(ops::sqrt(residual.top), ops::sqrt(residual.below)));
    s.set("before", (x - next) * X.spread(ops::reciprocal(tau)) - slope);
  }
  s.number("sigma", sigma);
  s.number("norm", s["norm"]);
  if (!p.flag("objective")) return;
  terms_objective(p, s, s.value("f", s.apply("A", next) - s.b()), next);
}

Verdict judge_pdhg(const Problem& p, const Numbers& n) {
  const double change = std::sqrt(n["change"]), norm = std::sqrt(n["norm"]), tau = n["tau"];
  double dual = dual_residual(n, "y", "sigma", norm, change), moved = n["y.change"],
         size = n["y.size"];
  for (index_t i = 0; i < term_count(p); ++i) {
    const std::string u = of_term("u", i);
    dual = std::max(dual, dual_residual(n, u, "sigma", norm, change));
    moved += n[u + ".change"];
    size += n[u + ".size"];
  }
  const double top = change / tau + norm * std::sqrt(moved);
  const double below = std::max(std::sqrt(n["size"]) / tau, norm * std::sqrt(size));
  const double primal = relative(top, below);
  return {.residual = std::max(primal, dual),
          .objective = recorded_objective(n),
          .change = change,
          .numbers = {primal, dual}};
}

// The normal operators of tiles are there for their norms only: their data go with them.
class NormsOfTiles {
 public:
  explicit NormsOfTiles(const Problem& p) {
    if (p.tiles().empty()) return;
    ConfigOverrides overrides;
    overrides.cache_adjoint_normal = false;
    scope_.emplace(overrides);
  }

 private:
  std::optional<ConfigScope> scope_;
};

// tau sigma |(A, K)|^2 = 0.99, with sigma = ratio tau.
Preparation prepare_pdhg(const Problem& p, std::uint64_t seed) {
  const NormsOfTiles scope(p);
  Preparation made;
  const OperatorNorm A = operator_norm2(p.op("A"), p.x().type(), seed);
  double norm = A.value;
  made.applications = A.applications;
  for (index_t i = 0; i < term_count(p); ++i) {
    const OperatorNorm K = operator_norm2(p.op(of_term("K", i)), p.x().type(), seed);
    made.applications += K.applications;
    norm += K.value;
  }
  if (norm == 0) norm = 1;
  const double ratio = p.real("ratio", 1), tau = std::sqrt(0.99 / (norm * ratio));
  made.values = {{"tau", tau}, {"sigma", ratio * tau}, {"norm", norm}};
  return made;
}

index_t prepare_pdhg_bytes(const Problem& p) {
  const NormsOfTiles scope(p);
  index_t bytes = 0;
  const auto add = [&](const NamedLinop& A) {
    const index_t data = p.tiles().empty() ? 0 : operator_bytes({A, A.N()}) - operator_bytes({A});
    bytes = std::max(bytes, operator_norm2_bytes(A, p.x().type()) + data);
  };
  add(p.op("A"));
  for (index_t i = 0; i < term_count(p); ++i) add(p.op(of_term("K", i)));
  return bytes;
}

void check_pdhg(const Problem& p) {
  const double modulus = p.real("strong", 0);
  if (!(modulus >= 0) || !std::isfinite(modulus)) {
    throw ValueError("[pdhg] strong: got " + p.attr("strong").str() +
                     ", expected a number that is not negative");
  }
  if (modulus > 0 && adapts(p)) {
    throw ValueError("[pdhg] adapt: got a strong convexity too, expected one of the two");
  }
  if (p.real("ratio", 1) > 0) return;
  throw ValueError("[pdhg] ratio: got " + p.attr("ratio").str() + ", expected a positive number");
}

constexpr SolverType kPdhg{.name = "pdhg",
                           .declare = declare_pdhg,
                           .prepare = prepare_pdhg,
                           .prepare_bytes = prepare_pdhg_bytes,
                           .setup = set_up_pdhg,
                           .step = step_pdhg,
                           .judge = judge_pdhg,
                           .check = check_pdhg};
PALIMPSEST_REGISTER_SOLVER(kPdhg);

}  // namespace
}  // namespace palimpsest
