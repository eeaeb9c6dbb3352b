// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/conjugate_gradients.hpp"

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/solve/frame/options.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

// If the recurred residual has drifted from the true one by this multiple of the latter, the
// direction begins anew. Near rounding the drift is as large as the residual, and a direction that
// is conjugate to the recurred one then leads uphill: without a restart the residual grows without
// bound. 0 would restart at every refresh, for 5 times the iterations with .refresh = 1.
constexpr double kLostDrift = 0.1;

// x the iterate, r = b - A x, p the direction, rho = <r, M r>, objective <x, A x> / 2 - Re <b, x>.
void declare_cg(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("r", p.x(), Init::b());
  state.add("p", p.x());
  state.add("rho", p.numbers());
  state.add("objective", p.numbers());
}

// With a preconditioner a step makes its direction itself, the first from p = 0.
void set_up_cg(const Problem& p, Scope& s) {
  const Space& X = p.x();
  const Variable &x = s["x"], &b = s["r"];
  const Variable r = p.has_x0() ? b - s.apply("A", x) : b;
  const Variable bb = X.norm2(b), rr = p.has_x0() ? X.norm2(r) : bb;
  s.number("bb", bb);
  s.number("start.rr", rr);
  s.set("rho", rr);
  if (!p.has_op("M")) s.set("p", r + s["p"]);
  if (!p.has_x0()) return;
  s.set("r", r);
  // <x, A x> / 2 - Re <b, x> = -Re <x, b + r> / 2.
  s.set("objective", (X.real_dot(x, b) + X.real_dot(x, r)) * -0.5);
}

// A step with M begins with z = M r, rho_before = rho, rho = <r, z>, p = z + rho / rho_before p, so
// that M is not applied to the last residual. Without M this is the end of the step, and rho is the
// squared norm of the new residual.
void step_cg(const Problem& p, Scope& s, int variant) {
  const Space& X = p.x();
  const Variable &x = s["x"], &before = s["rho"];
  Variable direction = s["p"], rho = before;
  if (p.has_op("M")) {
    const Variable z = s.apply("M", s["r"]);
    rho = X.real_dot(s["r"], z);
    direction = ops::fma(X.spread(ratio(rho, before)), direction, z);
  }
  const Variable q = s.apply("A", direction);
  const Variable pq = X.dot(direction, q);
  const Variable can_move =
      ops::logical_and(ops::logical_and(is_positive(pq), ops::isfinite(rho)), ops::gt(rho, 0.0));
  const Variable alpha = value_if(can_move, rho / ops::real(pq));
  const Variable moved = ops::fma(X.spread(alpha), direction, x);
  s.guard(ops::real(pq));
  const Variable recurred = s["r"] - X.spread(alpha) * q;
  const Variable residual = variant == 1 ? s.b() - s.apply("A", moved) : recurred;
  const Variable drift = variant == 1 ? X.norm2(residual - recurred) : Variable();
  const Variable rr = set_with_norm(X, s, "r", residual, {q}), r = s.latest("r");
  s.guard(rr);
  s.set("x", moved);
  Variable beta = ratio(rr, before), kept_rho = rho;
  if (variant == 1) {
    const Variable is_kept = ops::le(drift, rr * (kLostDrift * kLostDrift));
    beta = value_if(is_kept, beta);
    kept_rho = value_if(is_kept, rho);  // the next step with M divides by it: 0 makes p = z
  }
  s.set("p", p.has_op("M") ? direction : ops::fma(X.spread(beta), direction, r));
  s.set("rho", p.has_op("M") ? kept_rho : rr);
  // The minimum along p lies rho^2 / (2 <p, A p>) below.
  s.set("objective", s["objective"] - alpha * rho * 0.5);
  complex_number(s, "pq", pq);
  s.number("rho", rho);
  s.number("rr", rr);
  s.number("objective", s.latest("objective"));
}

Verdict judge_cg(const Problem& p, const Numbers& n) {
  const double im = n.has("pq.im") ? n["pq.im"] : 0;
  return {.residual = relative_residual(p, n, n["rr"]),
          .objective = n["objective"],
          .is_breakdown = n["rho"] <= 0 || !is_positive(n["pq"], im, p.x().type().dtype)};
}

constexpr SolverType kConjugateGradients{
    .name = "conjugate_gradients",
    .declare = declare_cg,
    .setup = set_up_cg,
    .step = step_cg,
    .variant =
        [](const Problem& p, int k) {
          const index_t refresh = p.integer("refresh", 0);
          return refresh > 0 && k % refresh == 0 ? 1 : 0;
        },
    .variants = [](const Problem& p) { return p.integer("refresh", 0) > 0 ? 2 : 1; },
    .judge = judge_cg,
    .judge_start =
        [](const Problem& p, const Numbers& n) {
          return Verdict{.residual = relative_residual(p, n, n["start.rr"])};
        },
    .check =
        [](const Problem& p) {
          check_square(p, "conjugate_gradients");
          expect_option(p, "conjugate_gradients", "refresh", p.integer("refresh", 0) >= 0,
                        "at least 0");
        },
    .is_linear = true,
};
PALIMPSEST_REGISTER_SOLVER(kConjugateGradients);

}  // namespace

}  // namespace palimpsest
