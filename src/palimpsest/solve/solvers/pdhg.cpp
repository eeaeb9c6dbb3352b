// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/solvers/dual_steps.hpp"
#include "palimpsest/solve/solvers/step_sizes.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

constexpr double kFirstAdaption = 10;

// Adaptive steps add states: "Ax" and the K_i x; "before" = (x_before - x) / tau - (slope before);
// "dual", the dual residual of the iteration before, relative to |(A, K)| |x|; "duals", |(y, u)|^2
// of it. The primal residual of that iteration follows from "before" once the new slope is known.
void declare_pdhg(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("y", p.b());
  state.add("tau", p.numbers(), 1.0);
  state.add("sigma", p.numbers(), 1.0);
  state.add("norm", p.numbers(), 1.0);
  declare_duals(p, state);
  if (!adapts(p)) return;
  state.add("Ax", p.b());
  state.add("before", p.x());
  state.add("dual", p.numbers());
  state.add("duals", p.numbers());
  declare_adaption(p, state, kFirstAdaption);
}

void set_up_pdhg(const Problem& p, Scope& s) {
  // Data that are not finite end the solve here: the first step would take x over before y.
  const Space& B = p.b();
  const Variable size = ops::abs(s.b());
  s.number("excess",
           B.total(sum_besides(ops::where(ops::isfinite(size), 0.0, size), B.batch_axes())));
  if (!adapts(p) || !p.has_x0()) return;
  s.guard(p.x().norm2(s["x"]));  // as in condat_vu
  s.set("Ax", s.apply("A", s["x"]));
  set_up_images(p, s);
}

// The step sizes of this iteration, by the residuals of the one before.
struct Steps {
  Variable tau, sigma;
};
Steps steps_of_pdhg(const Problem& p, Scope& s, const Variable& slope) {
  const Variable tau = s["tau"], sigma = s["sigma"];
  if (!adapts(p)) return {tau, sigma};
  const Variable top = p.x().norm2(s["before"] + slope);
  const Variable primal = relative(ops::sqrt(top), ops::sqrt(s["norm"] * s["duals"]));
  const Variable factor = adapt(s, primal, s["dual"]);
  return {tau / factor, sigma * factor};
}

void step_pdhg(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable x = s["x"];
  Variable slope = s.adjoint("A", s["y"]);
  for (index_t i = 0; i < term_count(p); ++i) {
    slope = slope + s.adjoint(of_term("K", i), Dual(p, i).old(s));
  }
  const Steps steps = steps_of_pdhg(p, s, slope);
  const Variable tau = steps.tau;
  Variable sigma = steps.sigma;
  DualResidual residual;
  auto [next, ahead, change2, size] = primal_step(p, s, slope, tau, {slope});
  const double modulus = p.real("strong", 0);
  if (modulus > 0) {  // for a strongly convex h: the steps of x go to 0
    const Variable theta = ops::reciprocal(ops::sqrt(1.0 + tau * (2 * modulus)));
    s.set("tau", tau * theta);
    sigma = sigma / theta;
    s.set("sigma", sigma);
    ahead = ops::fma(X.spread(theta), next - x, next);
  }
  const Variable image = s.apply("A", ahead);
  Dual y(p, "y", "f");
  y.kept = "Ax";
  dual_step(p, s, y, image, image - s.b(), sigma, residual);
  for (index_t i = 0; i < term_count(p); ++i) {
    const Dual u(p, i);
    const Variable there = s.apply(of_term("K", i), ahead);
    dual_step(p, s, u, there, shifted(p, u.shift, there), sigma, residual);
  }
  s.set("x", next);
  if (adapts(p)) {
    s.set("tau", tau);
    s.set("sigma", sigma);
    s.set("dual", relative(ops::sqrt(residual.top), ops::sqrt(s["norm"] * size)));
    s.set("duals", residual.size);
    s.set("before", (x - next) * X.spread(ops::reciprocal(tau)) - slope);
  }
  s.number("sigma", sigma);
  s.number("norm", s["norm"]);
  if (!p.flag("objective")) return;
  Variable value = s.value("f", s.apply("A", next) - s.b());
  if (p.has_prox("h")) value = value + s.value("h", next);
  for (index_t i = 0; i < term_count(p); ++i) {
    value = value + term_value(p, s, i, s.apply(of_term("K", i), next));
  }
  s.number("objective", value);
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
          .change = growth_of(n, change),
          .numbers = {primal, dual}};
}

void check_pdhg(const Problem& p) {
  expect_not_negative(p, "pdhg", "strong");
  expect_positive(p, "pdhg", "ratio");
  if (p.real("strong", 0) > 0 && adapts(p)) {
    throw ValueError("[pdhg] adapt: got a strong convexity too, expected one of the two");
  }
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
