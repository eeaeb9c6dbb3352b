// SPDX-License-Identifier: Apache-2.0
// condat_vu and pdhg. The residuals of the optimality conditions use |K| |u' - u| for
// |K^H (u' - u)|, and |K| |x' - x| for |K (x' - x)|, where the exact ones would take another
// application or another vector.
#include <algorithm>
#include <cmath>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/solvers/proximal.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

std::string of_term(const char* base, index_t i) { return base + std::to_string(i); }
index_t term_count(const Problem& p) { return p.integer("terms", 0); }

// u' = prox_{sigma g*}(u + sigma (image - d)), of the dual variable `name`.
Variable dual_step(const Problem& p, Scope& s, const std::string& name, const std::string& g,
                   const Variable& image, const std::string& shift, const Variable& sigma) {
  const Space U = p.argument_of(g);
  Variable distance = image;
  if (p.has_attr(shift)) {
    distance = distance - constant(p.attr(shift).as_tensor()).astype(image.dtype());
  }
  const Variable u = s[name];
  const Variable next = s.conjugate_prox(g, ops::fma(U.spread(sigma), distance, u), sigma);
  s.set(name, next);
  s.number(name + ".change", U.norm2(next - u));
  s.number(name + ".size", U.norm2(next));
  s.number(name + ".image", U.norm2(image));
  return next;
}

// x' = prox_{tau h}(x - tau slope), with the numbers that the test needs.
Variable primal_step(const Problem& p, Scope& s, const Variable& slope) {
  const Space& X = p.x();
  const Variable x = s["x"], tau = s["tau"];
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
  const double below = std::max(std::sqrt(n[name + ".size"]) / step, std::sqrt(n[name + ".image"]));
  return top == 0 ? 0 : below > 0 ? top / below : 1;
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
  }
}

void step_condat(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable x = s["x"];
  const Variable next = primal_step(p, s, gradient(p, s, x));
  const Variable ahead = 2.0 * next - x;
  Variable moved;
  for (index_t i = 0; i < term_count(p); ++i) {
    const std::string K = of_term("K", i), u = of_term("u", i), sigma = of_term("sigma", i);
    const Variable image = s.apply(K, ahead);
    const Variable dual = dual_step(p, s, u, of_term("g", i), image, of_term("d", i), s[sigma]);
    const Variable back = s.adjoint(K, dual - s[u]);
    moved = moved.defined() ? moved + back : back;
    s.number(sigma, s[sigma]);
    s.number(of_term("norm", i), s[of_term("norm", i)]);
  }
  if (moved.defined()) {
    s.set("rhs", s["rhs"] - moved.astype(X.type().dtype));
    s.number("primal", X.norm2((x - next) * X.spread(ops::reciprocal(s["tau"])) + moved));
  } else {
    s.number("primal", X.norm2(x - next) / (s["tau"] * s["tau"]));
  }
}

Verdict judge_condat(const Problem& p, const Numbers& n) {
  const double change = std::sqrt(n["change"]);
  const double below = std::max(std::sqrt(n["size"]) / n["tau"], std::sqrt(n["rhs"]));
  const double primal = std::sqrt(n["primal"]);
  Verdict verdict{.residual = primal == 0 ? 0 : below > 0 ? primal / below : 1, .change = change};
  verdict.numbers[0] = verdict.residual;
  for (index_t i = 0; i < term_count(p); ++i) {
    const double dual = dual_residual(n, of_term("u", i), of_term("sigma", i),
                                      std::sqrt(n[of_term("norm", i)]), change);
    verdict.numbers[1] = std::max(verdict.numbers[1], dual);
  }
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

constexpr SolverType kCondatVu{.name = "condat_vu",
                               .declare = declare_condat,
                               .prepare = prepare_condat,
                               .prepare_bytes = prepare_condat_bytes,
                               .setup = set_up_rhs,
                               .step = step_condat,
                               .judge = judge_condat,
                               .check = [](const Problem& p) { check_lipschitz(p, "condat_vu"); }};
PALIMPSEST_REGISTER_SOLVER(kCondatVu);

// -- pdhg ----------------------------------------------------------------------------------------

void declare_pdhg(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("y", p.b());
  state.add("tau", p.numbers(), 1.0);
  state.add("sigma", p.numbers(), 1.0);
  state.add("norm", p.numbers(), 1.0);
  for (index_t i = 0; i < term_count(p); ++i) {
    state.add(of_term("u", i), p.range_of(of_term("K", i)));
  }
}

void step_pdhg(const Problem& p, Scope& s, int) {
  const Variable x = s["x"];
  Variable sigma = s["sigma"];
  Variable slope = s.adjoint("A", s["y"]);
  for (index_t i = 0; i < term_count(p); ++i) {
    slope = slope + s.adjoint(of_term("K", i), s[of_term("u", i)]);
  }
  const Variable next = primal_step(p, s, slope);
  const double modulus = p.real("strong", 0);
  Variable ahead = 2.0 * next - x;
  if (modulus > 0) {  // steps that fit a strongly convex h, of which those of x go to 0
    const Variable tau = s["tau"];
    const Variable theta = ops::reciprocal(ops::sqrt(1.0 + tau * (2 * modulus)));
    s.set("tau", tau * theta);
    sigma = sigma / theta;
    s.set("sigma", sigma);
    ahead = ops::fma(p.x().spread(theta), next - x, next);
  }
  const Variable image = s.apply("A", ahead) - s.b();
  dual_step(p, s, "y", "f", image, "no shift", sigma);
  for (index_t i = 0; i < term_count(p); ++i) {
    const std::string K = of_term("K", i);
    dual_step(p, s, of_term("u", i), of_term("g", i), s.apply(K, ahead), of_term("d", i), sigma);
  }
  s.number("sigma", sigma);
  s.number("norm", s["norm"]);
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
  const double primal = top == 0 ? 0 : below > 0 ? top / below : 1;
  return {.residual = std::max(primal, dual), .change = change, .numbers = {primal, dual}};
}

// tau sigma |(A, K)|^2 = 0.99, with sigma = ratio tau.
Preparation prepare_pdhg(const Problem& p, std::uint64_t seed) {
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
  return std::max(operator_norm2_bytes(p.op("A"), p.x().type()), prepare_condat_bytes(p));
}

void check_pdhg(const Problem& p) {
  const double modulus = p.real("strong", 0);
  if (!(modulus >= 0) || !std::isfinite(modulus)) {
    throw ValueError("[pdhg] strong: got " + p.attr("strong").str() +
                     ", expected a number that is not negative");
  }
  if (p.real("ratio", 1) > 0) return;
  throw ValueError("[pdhg] ratio: got " + p.attr("ratio").str() + ", expected a positive number");
}

constexpr SolverType kPdhg{.name = "pdhg",
                           .declare = declare_pdhg,
                           .prepare = prepare_pdhg,
                           .prepare_bytes = prepare_pdhg_bytes,
                           .step = step_pdhg,
                           .judge = judge_pdhg,
                           .check = check_pdhg};
PALIMPSEST_REGISTER_SOLVER(kPdhg);

}  // namespace
}  // namespace palimpsest
