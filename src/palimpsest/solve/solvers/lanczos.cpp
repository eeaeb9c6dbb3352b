// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

// x the vector of this step, not yet of length 1, and the one before; beta its length.
void declare_lanczos(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::b());
  state.add("before", p.x());
  state.add("beta", p.numbers());
}

void set_up_lanczos(const Problem& p, Scope& s) { s.set("beta", ops::sqrt(p.x().norm2(s["x"]))); }

// v = x / beta, w = A v - beta v_before, alpha = <v, w>, x' = w - alpha v. alpha is taken twice:
// the second time removes the rounding errors left along v (local reorthogonalization).
void step_lanczos(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable beta = s["beta"];
  const Variable scale = value_if(ops::gt(beta, 0.0), ops::reciprocal(beta));
  const Variable v = s["x"] * X.spread(scale);
  const Variable w = ops::fma(X.spread(-beta), s["before"], s.apply("A", v));
  const Variable first = X.real_dot(v, w);
  const Variable rest = ops::fma(X.spread(-first), v, w);
  const Variable second = X.real_dot(v, rest);
  const Variable next = ops::fma(X.spread(-second), v, rest);
  const Variable alpha = first + second;
  s.guard(alpha);
  const Variable next_beta = ops::sqrt(X.norm2(next));
  s.guard(next_beta);
  s.set("x", next);
  s.set("before", v);
  s.set("beta", next_beta);
  s.number("alpha", alpha);
  s.number("beta", next_beta);
}

constexpr SolverType kLanczos{
    .name = "lanczos",
    .declare = declare_lanczos,
    .setup = set_up_lanczos,
    .step = step_lanczos,
    .judge =
        [](const Problem&, const Numbers& n) {
          return Verdict{.numbers = {n["alpha"], n["beta"]}};
        },
    .check = [](const Problem& p) { check_square(p, "lanczos"); },
};
PALIMPSEST_REGISTER_SOLVER(kLanczos);

}  // namespace
}  // namespace palimpsest
