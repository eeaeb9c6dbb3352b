// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <vector>

#include "palimpsest/ops/elementwise/one_pass.hpp"
#include "palimpsest/solve/frame/types.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"
#include "palimpsest/solve/square_systems.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

// A diagonal entry of R up to this multiple of rounding times the largest entry of T counts as 0.
constexpr double kSingular = 10;

// Lanczos vectors r1 (before), r2 (now) and y = M r2; directions w, w2 (before); the QR
// factorization of the tridiagonal matrix T, and its largest entry. Names as in the paper.
void declare_minres(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("r2", p.x(), Init::b());
  for (const char* name : {"r1", "w", "w2"}) state.add(name, p.x());
  if (p.has_op("M")) state.add("y", p.x());
  for (const char* name : {"beta", "oldb", "dbar", "epsln", "phibar", "sn", "T"}) {
    state.add(name, p.numbers());
  }
  state.add("cs", p.numbers(), -1.0);
}

Variable preconditioned_by(const Problem& p, Scope& s, const Variable& r) {
  return p.has_op("M") ? s.apply("M", r) : r;
}

// |r|^2 in the norm of M.
Variable length(const Problem& p, const Variable& r, const Variable& y) {
  return p.has_op("M") ? p.x().real_dot(r, y) : p.x().norm2(r);
}

// The same; negative where M gives a vector other than 0 no positive length.
Variable checked_length(const Problem& p, const Variable& r, const Variable& y) {
  const Variable square = length(p, r, y);
  if (!p.has_op("M")) return square;
  const Variable is_lost = ops::logical_and(ops::le(square, 0.0), ops::gt(p.x().norm2(r), 0.0));
  return ops::where(is_lost, ops::full_like(square, -1.0), square);
}

void set_up_minres(const Problem& p, Scope& s) {
  const Variable b = s["r2"];
  const Variable r = p.has_x0() ? b - s.apply("A", s["x"]) : b;
  const Variable y = preconditioned_by(p, s, r);
  const Variable bb = p.has_op("M") && p.has_x0() ? checked_length(p, b, preconditioned_by(p, s, b))
                                                  : checked_length(p, b, p.has_x0() ? b : y);
  const Variable square = p.has_x0() ? checked_length(p, r, y) : bb;
  const Variable beta = ops::sqrt(ops::maximum(square, 0.0));
  s.number("bb", bb);
  s.number("start", square);
  s.set("r2", r);
  if (p.has_op("M")) s.set("y", y);
  s.set("beta", beta);
  s.set("phibar", beta);
}

void step_minres(const Problem& p, Scope& s, int) {
  const Space& X = p.x();
  const Variable beta = s["beta"], oldb = s["oldb"];
  const Variable r2 = s["r2"], y = p.has_op("M") ? s["y"] : r2;
  const Variable v = y * X.spread(ratio(ops::full_like(beta, 1.0), beta));
  // oldb is 0 in the first iteration, which has no vector before it.
  const Variable image = ops::fma(X.spread(-ratio(beta, oldb)), s["r1"], s.apply("A", v));
  const Variable alpha = X.real_dot(v, image);
  s.guard(alpha);
  const Variable r = ops::fma(X.spread(-ratio(alpha, beta)), r2, image);
  const Variable next_y = preconditioned_by(p, s, r);
  const Variable square = length(p, r, next_y);
  s.guard(square);
  const Variable next = ops::sqrt(ops::maximum(square, 0.0));
  const Variable oldeps = s["epsln"], delta = s["cs"] * s["dbar"] + s["sn"] * alpha;
  const Variable gbar = s["sn"] * s["dbar"] - s["cs"] * alpha;
  const Variable gamma = ops::hypot(gbar, next);
  const Variable largest = ops::maximum(s["T"], ops::maximum(ops::abs(alpha), next));
  const Variable is_regular = ops::gt(gamma, largest * (kSingular * rounding_of(gamma.dtype())));
  const Variable denom = value_if(is_regular, ops::reciprocal(gamma));
  const Variable cs = gbar * denom, sn = next * denom;
  const Variable phi = cs * s["phibar"], phibar = sn * s["phibar"];
  Variable w = ops::fma(X.spread(-oldeps), s["w2"], v);
  w = ops::fma(X.spread(-delta), s["w"], w) * X.spread(denom);
  const std::array<const char*, 5> names{"x", "w", "w2", "r1", "r2"};
  const std::array<Variable, 5> values{ops::fma(X.spread(phi), w, s["x"]), w, s["w"], r2, r};
  std::vector<Variable> kept, leaves{v, r};
  for (std::size_t k = 0; k < names.size(); ++k) {
    leaves.push_back(s[names[k]]);
    kept.push_back(s.guarded(X, values[k], s[names[k]]));
  }
  kept = ops::one_pass(kept, {}, leaves).arrays;
  for (std::size_t k = 0; k < names.size(); ++k) s.set_as_is(names[k], kept[k]);
  if (p.has_op("M")) s.set("y", next_y);
  s.set("oldb", beta);
  s.set("beta", next);
  s.set("dbar", -s["cs"] * next);
  s.set("epsln", s["sn"] * next);
  s.set("cs", cs);
  s.set("sn", sn);
  s.set("phibar", phibar);
  s.number("phibar", ops::abs(phibar));
  s.number("square", square);
  s.set("T", largest);
  s.number("is regular", is_regular.astype(gamma.dtype()));
}

constexpr SolverType kMinres{
    .name = "minres",
    .declare = declare_minres,
    .setup = set_up_minres,
    .step = step_minres,
    .judge =
        [](const Problem&, const Numbers& n) {
          return Verdict{.residual = n["phibar"] == 0 ? 0 : n["phibar"] / std::sqrt(n["bb"]),
                         .is_breakdown = n["square"] < 0 || n["bb"] < 0 || n["is regular"] == 0};
        },
    .judge_start =
        [](const Problem&, const Numbers& n) {
          return Verdict{.residual = n["start"] == 0 ? 0 : std::sqrt(n["start"] / n["bb"]),
                         .is_breakdown = n["start"] < 0 || n["bb"] < 0};
        },
    .check = [](const Problem& p) { check_square(p, "minres"); },
    .is_linear = true};
PALIMPSEST_REGISTER_SOLVER(kMinres);

}  // namespace

}  // namespace palimpsest
