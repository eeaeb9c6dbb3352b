// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "palimpsest/solve/frame/options.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest {
namespace {

using namespace krylov;

double damp2(const Problem& p) { return p.real("damp", 0) * p.real("damp", 0); }

// A^H r - damp^2 x.
Variable slope_of(const Problem& p, Scope& s, const Variable& r, const Variable& x) {
  const Variable image = s.adjoint("A", r).astype(p.x().type().dtype);
  return damp2(p) == 0 ? image : image - x * damp2(p);
}

// The power of two that brings A^H b near 1. Squares of A p have the fourth power of |A| without
// it, and leave the range of float32 from |A| = 1e9 on.
Variable unit_for(const Problem& p, const Variable& image) {
  const Space& X = p.x();
  const double most = X.number_type().dtype == DType::float32 ? 126 : 1022;
  Variable parts = ops::abs(ops::real(image));
  if (is_complex(image.dtype())) parts = parts + ops::abs(ops::imag(image));
  const Variable sum = X.total(sum_besides(parts, X.batch_axes()));
  const Variable exponent = ops::clip(ops::round(ops::log2(sum)), -most, most);
  const Variable one = ops::full_like(sum, 1.0);
  return ops::where(ops::gt(sum, 0.0), ops::pow(one * 2.0, -exponent), one);
}

// "p" and "gamma" are p and |A^H r|^2 in this unit, a power of two: no digit depends on it.
void declare_cgls(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  state.add("r", p.b(), Init::b());
  state.add("p", p.x());
  state.add("gamma", p.numbers());
  state.add("unit", p.numbers(), 1.0);
}

void set_up_cgls(const Problem& p, Scope& s) {
  const Space& X = p.x();
  const Variable b = s["r"];
  const Variable r = p.has_x0() ? b - s.apply("A", s["x"]) : b;
  const Variable image = s.adjoint("A", b).astype(X.type().dtype);
  const Variable unit = unit_for(p, image), spread = X.spread(unit);
  const Variable direction = (p.has_x0() ? slope_of(p, s, r, s["x"]) : image) * spread;
  const Variable gamma = X.norm2(direction);
  s.set("r", r);
  s.set("p", direction);
  s.set("gamma", gamma);
  s.set("unit", unit);
  s.number("start", gamma);
  s.number("normal", p.has_x0() ? X.norm2(image * spread) : gamma);
}

void step_cgls(const Problem& p, Scope& s, int) {
  const Space &X = p.x(), &B = p.b();
  const Variable x = s["x"], direction = s["p"], gamma = s["gamma"], unit = s["unit"];
  const Variable q = s.apply("A", direction) * B.spread(unit);
  Variable delta = B.norm2(q);
  if (damp2(p) != 0) delta = delta + X.norm2(direction) * damp2(p) * unit * unit;
  s.guard(delta);
  const Variable alpha = value_if(ops::gt(delta, 0.0), gamma / delta);
  const Variable moved = ops::fma(X.spread(alpha * unit), direction, x);
  const Variable r = ops::fma(B.spread(-alpha), q, s["r"]);
  s.set("r", r);
  const Variable next = slope_of(p, s, r, moved) * X.spread(unit), next_gamma = X.norm2(next);
  s.guard(next_gamma);
  s.set("x", moved);
  s.set("p", ops::fma(X.spread(ratio(next_gamma, gamma)), direction, next));
  s.set("gamma", next_gamma);
  s.number("delta", delta);
  s.number("gamma", next_gamma);
  Variable objective = B.norm2(r);
  if (damp2(p) != 0) objective = objective + X.norm2(moved) * damp2(p);
  s.number("objective", objective * 0.5);
}

double relative_of(const Numbers& n, const char* gamma) {
  return n[gamma] == 0 ? 0 : std::sqrt(n[gamma] / n["normal"]);
}

constexpr SolverType kCgls{
    .name = "cgls",
    .declare = declare_cgls,
    .setup = set_up_cgls,
    .step = step_cgls,
    .judge =
        [](const Problem&, const Numbers& n) {
          return Verdict{.residual = relative_of(n, "gamma"),
                         .objective = n["objective"],
                         .is_breakdown = !(n["delta"] > 0)};
        },
    .judge_start = [](const Problem&,
                      const Numbers& n) { return Verdict{.residual = relative_of(n, "start")}; },
    .check = [](const Problem& p) { expect_not_negative(p, "cgls", "damp"); },
    .is_linear = true};
PALIMPSEST_REGISTER_SOLVER(kCgls);

}  // namespace

}  // namespace palimpsest
