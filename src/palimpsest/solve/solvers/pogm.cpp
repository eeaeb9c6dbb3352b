// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/solvers/first_order.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

void declare_pogm(const Problem& p, StateList& state) {
  declare_first_order(p, state);
  state.add("w", p.x(), Init::x0_or_zero());
  state.add("z", p.x(), Init::x0_or_zero());
  state.add("theta", p.numbers(), 1.0);
  state.add("gamma", p.numbers(), 1.0);
}

// w' = x - a grad(x), z' = w' + (theta - 1) / theta' (w' - w) + theta / theta' (w' - x)
//      + a (theta - 1) / (gamma theta') (z - x), x' = prox_{gamma' h}(z'), with a = 1 / L.
// Variant 1 is the last iteration.
void step_pogm(const Problem& p, Scope& s, int variant) {
  const Space& X = p.x();
  const Variable x = s["x"], w = s["w"], z = s["z"], theta = s["theta"], gamma = s["gamma"];
  const Variable a = ops::reciprocal(s["L"]);
  const Variable theta_next = next_momentum(theta, variant == 1 ? 8 : 4);
  const Variable gamma_next = a * (2.0 * theta + theta_next - 1.0) / theta_next;
  const Variable w_next = ops::fma(X.spread(-a), gradient(p, s, x), x);
  const Variable momentum = (theta - 1.0) / theta_next;
  Variable v = ops::fma(X.spread(momentum), w_next - w, w_next);
  v = ops::fma(X.spread(theta / theta_next), w_next - x, v);
  v = ops::fma(X.spread(a * momentum / gamma), z - x, v);
  s.guard(X.norm2(v));
  const Variable next = prox_of_h(p, s, v, gamma_next);
  s.set("x", next);
  s.set("w", w_next);
  s.set("z", v);
  s.set("gamma", gamma_next);
  if (p.flag("restart")) {
    // G = grad(x) - (x' - z') / gamma' points uphill of the composite function at w'.
    const Variable slope = (x - w_next) * X.spread(ops::reciprocal(a)) -
                           (next - v) * X.spread(ops::reciprocal(gamma_next));
    const Variable uphill = X.real_dot(slope, x - next);
    s.set("theta", ops::where(ops::lt(uphill, 0.0), ops::full_like(theta, 1.0), theta_next));
  } else {
    s.set("theta", theta_next);
  }
  change_numbers(p, s, x, next);
  objective_number(p, s, next);
  add_to_mean(p, s, next);
}

constexpr SolverType kPogm = [] {
  SolverType type = first_order_solver("pogm", declare_pogm, step_pogm);
  type.variants = [](const Problem&) { return 2; };
  type.variant = [](const Problem& p, int k) {
    return k == p.integer("max_iterations", 0) ? 1 : 0;
  };
  return type;
}();
PALIMPSEST_REGISTER_SOLVER(kPogm);

}  // namespace
}  // namespace palimpsest
