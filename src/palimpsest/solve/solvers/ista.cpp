// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/solvers/first_order.hpp"

namespace palimpsest {
namespace {

using namespace proximal;

void step_ista(const Problem& p, Scope& s, int) {
  if (keeps_images(p)) return step_with_images(p, s, /*has_momentum=*/false);
  const Variable x = s["x"], step = ops::reciprocal(s["L"]);
  const Variable next = prox_of_h(p, s, descended(p, s, x, step), step);
  s.set("x", next);
  change_numbers(p, s, x, next);
  objective_number(p, s, next);
  add_to_mean(p, s, next);
}

constexpr SolverType kIsta = first_order_solver("ista", declare_first_order, step_ista);
constexpr SolverType kDescent =
    without_h(first_order_solver("gradient_descent", declare_first_order, step_ista));
PALIMPSEST_REGISTER_SOLVER(kIsta);
PALIMPSEST_REGISTER_SOLVER(kDescent);

}  // namespace
}  // namespace palimpsest
