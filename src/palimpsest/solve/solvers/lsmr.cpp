// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>
#include <vector>

#include "palimpsest/ops/elementwise/one_pass.hpp"
#include "palimpsest/solve/solvers/bidiagonal.hpp"

namespace palimpsest {
namespace {

using namespace bidiagonal;

void declare_lsmr(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  bidiagonal::declare(p, state);
  state.add("h", p.x());
  state.add("hbar", p.x());
  for (const char* name : {"alphabar", "zetabar", "sbar", "betadd", "betad", "tautilde",
                           "thetatilde", "zeta", "d", "anorm2", "maxrbar"}) {
    state.add(name, p.numbers());
  }
  for (const char* name : {"rho", "rhobar", "cbar", "rhod"}) state.add(name, p.numbers(), 1.0);
  state.add("minrbar", p.numbers(), std::numeric_limits<float>::max());
}

void set_up_lsmr(const Problem& p, Scope& s) {
  const Start first = start(p, s);
  s.set("h", first.v);
  s.set("alphabar", first.alpha);
  s.set("zetabar", first.alpha * first.beta);
  s.set("betadd", first.beta);
  s.set("anorm2", first.alpha * first.alpha);
}

// The norm of the residual, by a third rotation. Names as in the paper.
Variable residual_norm(Scope& s, const Rotation& hat, const Rotation& turn,
                       const Variable& thetabar, const Variable& rhobar, const Variable& zeta) {
  const Variable acute = hat.c * s["betadd"], check = -hat.s * s["betadd"];
  const Variable betahat = turn.c * acute, betadd = -turn.s * acute;
  const Rotation tilde = rotation(s["rhod"], thetabar);
  const Variable thetatilde = tilde.s * rhobar, rhod = tilde.c * rhobar;
  const Variable betad = tilde.c * betahat - tilde.s * s["betad"];
  const Variable tautilde = krylov::ratio(s["zeta"] - s["thetatilde"] * s["tautilde"], tilde.r);
  const Variable taud = krylov::ratio(zeta - thetatilde * tautilde, rhod);
  const Variable d = s["d"] + check * check, miss = betad - taud;
  s.set("betadd", betadd);
  s.set("betad", betad);
  s.set("rhod", rhod);
  s.set("thetatilde", thetatilde);
  s.set("tautilde", tautilde);
  s.set("d", d);
  return ops::sqrt(d + miss * miss + betadd * betadd);
}

void step_lsmr(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Lengths next = advance(p, s);
  const Rotation hat = rotation(s["alphabar"], number(p, p.real("damp", 0)));
  const Rotation turn = rotation(hat.r, next.beta);
  const Variable rho = turn.r, theta = turn.s * next.alpha;
  const Variable thetabar = s["sbar"] * rho, rhotemp = s["cbar"] * rho;
  const Rotation bar = rotation(rhotemp, theta);
  const Variable rhobar = bar.r, zeta = bar.c * s["zetabar"], zetabar = -bar.s * s["zetabar"];
  const Variable back = krylov::ratio(thetabar * rho, s["rho"] * s["rhobar"]);
  const Variable hbar = ops::fma(X.spread(-back), s["hbar"], s["h"]);
  const Variable x = ops::fma(X.spread(krylov::ratio(zeta, rho * rhobar)), hbar, s["x"]);
  const Variable rnorm = residual_norm(s, hat, turn, thetabar, rhobar, zeta);
  const Variable anorm2 = s["anorm2"] + next.beta * next.beta;
  // The first rhobar is 1 in any unit: it does not count.
  const Variable counts = ops::gt(s.iteration(), 1.0);
  const Variable maxrbar =
      ops::where(counts, ops::maximum(s["maxrbar"], s["rhobar"]), s["maxrbar"]);
  const Variable minrbar =
      ops::where(counts, ops::minimum(s["minrbar"], s["rhobar"]), s["minrbar"]);
  const Variable h = ops::fma(X.spread(-krylov::ratio(theta, rho)), s["h"], next.v);
  const std::array<const char*, 4> names{"v", "x", "hbar", "h"};
  const std::array<Variable, 4> values{next.v, x, hbar, h};
  std::vector<Variable> kept, leaves{next.w};
  for (std::size_t k = 0; k < names.size(); ++k) {
    leaves.push_back(s[names[k]]);
    kept.push_back(s.guarded(X, values[k], s[names[k]]));
  }
  kept = ops::one_pass(kept, {}, leaves).arrays;
  for (std::size_t k = 0; k < names.size(); ++k) s.set_as_is(names[k], kept[k]);
  s.set("alphabar", turn.c * next.alpha);
  s.set("rho", rho);
  s.set("rhobar", rhobar);
  s.set("cbar", bar.c);
  s.set("sbar", bar.s);
  s.set("zeta", zeta);
  s.set("zetabar", zetabar);
  s.set("anorm2", anorm2 + next.alpha * next.alpha);
  s.set("maxrbar", maxrbar);
  s.set("minrbar", minrbar);
  s.number("rnorm", rnorm);
  s.number("arnorm", ops::abs(zetabar));
  s.number("anorm", ops::sqrt(anorm2));
  s.number("acond", ops::maximum(maxrbar, rhotemp) / ops::minimum(minrbar, rhotemp));
  s.number("xnorm", ops::sqrt(X.norm2(kept[1])));
}

constexpr SolverType kLsmr{.name = "lsmr",
                           .declare = declare_lsmr,
                           .setup = set_up_lsmr,
                           .step = step_lsmr,
                           .judge = judge,
                           .judge_start = judge_start,
                           .result = result,
                           .check = [](const Problem& p) { check_damped(p, "lsmr"); },
                           .is_linear = true};
PALIMPSEST_REGISTER_SOLVER(kLsmr);

}  // namespace
}  // namespace palimpsest
