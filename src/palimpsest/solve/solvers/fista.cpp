// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/solvers/first_order.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

void declare_fista(const Problem& p, StateList& state) {
  declare_first_order(p, state);
  state.add("z", p.x(), Init::x0_or_zero());
  state.add("t", p.numbers(), 1.0);
  if (keeps_images(p)) state.add("Nz", p.x());
}

// x' = prox(z - grad(z) / L), z' = x' + (t - 1) / t' (x' - x). Where the momentum leads uphill, t
// is 1 again.
void step_fista(const Problem& p, Scope& s, int) {
  if (keeps_images(p)) return step_with_images(p, s, /*has_momentum=*/true);
  const Space& X = p.x();
  const Variable x = s["x"], z = s["z"], step = ops::reciprocal(s["L"]);
  const Variable next = prox_of_h(p, s, descended(p, s, z, step), step);
  const Variable moved = next - x;
  Variable t = s["t"];
  if (p.flag("restart")) {
    const Variable is_uphill = ops::gt(X.real_dot(z - next, moved), 0.0);
    t = ops::where(is_uphill, ops::full_like(t, 1.0), t);
  }
  const Variable t_next = next_momentum(t);
  s.set("x", next);
  s.set("z", ops::fma(X.spread((t - 1.0) / t_next), moved, next));
  s.set("t", t_next);
  change_numbers(p, s, x, next);
  objective_number(p, s, next);
  add_to_mean(p, s, next);
}

constexpr SolverType kFista = first_order_solver("fista", declare_fista, step_fista);
constexpr SolverType kNesterov =
    without_h(first_order_solver("nesterov", declare_fista, step_fista));
PALIMPSEST_REGISTER_SOLVER(kFista);
PALIMPSEST_REGISTER_SOLVER(kNesterov);

}  // namespace
}  // namespace palimpsest
