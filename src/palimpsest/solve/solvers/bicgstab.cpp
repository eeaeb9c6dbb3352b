// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "palimpsest/solve/frame/types.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"
#include "palimpsest/solve/square_systems.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

// Numbers of the dtype of the vectors, for inner products.
Space scalars(const Problem& p) {
  TensorType type = p.x().number_type();
  type.dtype = p.x().type().dtype;
  return Space(type, p.batch(), p.batch());
}

void declare_bicgstab(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("r", p.x(), Init::b());
  state.add("shadow", p.x(), Init::b());
  state.add("p", p.x());
  state.add("v", p.x());
  for (const char* name : {"rho", "alpha", "omega"}) state.add(name, scalars(p), 1.0);
}

void set_up_bicgstab(const Problem& p, Scope& s) {
  const Space& X = p.x();
  const Variable bb = X.norm2(s["r"]);
  s.number("bb", bb);
  if (!p.has_x0()) return s.number("start", bb);
  const Variable r = s["r"] - s.apply("A", s["x"]);
  s.set("r", r);
  s.number("start", X.norm2(r));
}

Variable preconditioned(const Problem& p, Scope& s, const Variable& v) {
  return p.has_op("M") ? s.apply("M", v) : v;
}

// p = r + beta (p - omega v), v = A M p, q = r - alpha v, t = A M q, x += alpha M p + omega M q,
// r = q - omega t.
void step_bicgstab(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable r = s["r"], shadow = s["shadow"];
  const Variable rho = X.dot(shadow, r);
  const Variable beta = ratio(rho, s["rho"]) * ratio(s["alpha"], s["omega"]);
  const Variable inner = ops::fma(X.spread(-s["omega"]), s["v"], s["p"]);
  const Variable direction = ops::fma(X.spread(beta), inner, r);
  const Variable step_1 = preconditioned(p, s, direction);
  const Variable v = s.apply("A", step_1);
  const Variable along = X.dot(shadow, v);
  s.guard(ops::real(along));
  const Variable alpha = ratio(rho, along);
  const Variable q = ops::fma(X.spread(-alpha), v, r);
  const Variable step_2 = preconditioned(p, s, q);
  const Variable t = s.apply("A", step_2);
  const Variable tt = X.norm2(t);
  const Variable omega = ratio(X.dot(t, q), tt.astype(alpha.dtype()));
  const Variable next = ops::fma(X.spread(-omega), t, q), rr = X.norm2(next);
  s.guard(rr);
  s.set("x", ops::fma(X.spread(omega), step_2, ops::fma(X.spread(alpha), step_1, s["x"])));
  s.set("r", next);
  s.set("p", direction);
  s.set("v", v);
  s.set("rho", rho);
  s.set("alpha", alpha);
  s.set("omega", omega);
  s.number("rho", ops::abs(rho));
  s.number("along", ops::abs(along));
  s.number("before", X.norm2(r));
  s.number("rr", rr);
}

Verdict judge_bicgstab(const Problem& p, const Numbers& n) {
  const double rounding = rounding_of(p.x().type().dtype);
  const double bound = rounding * rounding * n["before"];
  return {.residual = relative_residual(p, n, n["rr"]),
          .is_breakdown = n["rho"] <= bound || n["along"] <= bound * rounding};
}

constexpr SolverType kBicgstab{
    .name = "bicgstab",
    .declare = declare_bicgstab,
    .setup = set_up_bicgstab,
    .step = step_bicgstab,
    .judge = judge_bicgstab,
    .judge_start =
        [](const Problem& p, const Numbers& n) {
          return Verdict{.residual = relative_residual(p, n, n["start"])};
        },
    .check = [](const Problem& p) { check_square(p, "bicgstab"); },
    .is_linear = true};
PALIMPSEST_REGISTER_SOLVER(kBicgstab);

}  // namespace

}  // namespace palimpsest
