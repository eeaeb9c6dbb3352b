// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/bidiagonal.hpp"

namespace palimpsest {
namespace {

using namespace bidiagonal;

void declare_lsqr(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  bidiagonal::declare(p, state);
  state.add("w", p.x());
  for (const char* name : {"rhobar", "phibar", "anorm2", "ddnorm", "res2", "xxnorm", "z", "sn2"}) {
    state.add(name, p.numbers());
  }
  state.add("cs2", p.numbers(), -1.0);
}

void set_up_lsqr(const Problem& p, Scope& s) {
  const Start first = start(p, s);
  s.set("w", first.v);
  s.set("rhobar", first.alpha);
  s.set("phibar", first.beta);
}

// Names as in the paper. dd is the sum of |w / rho|^2, for the estimate of the condition.
void step_lsqr(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable damp = number(p, p.real("damp", 0)), before = s["alpha"];
  const Lengths next = advance(p, s);
  const Variable anorm2 = s["anorm2"] + before * before + next.beta * next.beta + damp * damp;
  const Rotation first = rotation(s["rhobar"], damp);
  const Variable psi = first.s * s["phibar"], damped = first.c * s["phibar"];
  const Rotation turn = rotation(first.r, next.beta);
  const Variable rho = turn.r, theta = turn.s * next.alpha;
  const Variable phi = turn.c * damped, phibar = turn.s * damped;
  const Variable one_over = krylov::ratio(ops::full_like(rho, 1.0), rho);
  const Variable dd = s["ddnorm"] + X.norm2(s["w"]) * one_over * one_over;
  // The norm of x, from a second QR factorization.
  const Variable delta = s["sn2"] * rho, gambar = -s["cs2"] * rho;
  const Variable rhs = phi - delta * s["z"], zbar = krylov::ratio(rhs, gambar);
  const Variable xnorm = ops::sqrt(s["xxnorm"] + zbar * zbar);
  const Rotation second = rotation(gambar, theta);
  const Variable z = krylov::ratio(rhs, second.r);
  const Variable res2 = s["res2"] + psi * psi;
  s.set("x", ops::fma(X.spread(phi * one_over), s["w"], s["x"]));
  s.set("w", ops::fma(X.spread(-theta * one_over), s["w"], next.v));
  s.set("rhobar", -turn.c * next.alpha);
  s.set("phibar", phibar);
  s.set("anorm2", anorm2);
  s.set("ddnorm", dd);
  s.set("res2", res2);
  s.set("xxnorm", s["xxnorm"] + z * z);
  s.set("z", z);
  s.set("cs2", second.c);
  s.set("sn2", second.s);
  s.number("rnorm", ops::sqrt(phibar * phibar + res2));
  s.number("arnorm", next.alpha * ops::abs(turn.s * phi));
  s.number("anorm", ops::sqrt(anorm2));
  s.number("acond", ops::sqrt(anorm2 * dd));
  s.number("xnorm", xnorm);
}

constexpr SolverType kLsqr{.name = "lsqr",
                           .declare = declare_lsqr,
                           .setup = set_up_lsqr,
                           .step = step_lsqr,
                           .judge = judge,
                           .judge_start = judge_start,
                           .result = result,
                           .check = [](const Problem& p) { check_damped(p, "lsqr"); },
                           .is_linear = true};
PALIMPSEST_REGISTER_SOLVER(kLsqr);

}  // namespace
}  // namespace palimpsest
