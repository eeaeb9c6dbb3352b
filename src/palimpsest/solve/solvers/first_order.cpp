// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/first_order.hpp"

#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/frame/types.hpp"
#include "palimpsest/solve/prox/parts.hpp"

namespace palimpsest::proximal {

Variable prox_of_h(const Problem& p, Scope& s, const Variable& v, const Variable& step) {
  if (!p.has_prox("h")) return v;
  const Variable next = s.prox("h", v, step);
  if (may_leave_range(p.prox("h"))) s.guard(p.x().norm2(next));
  return next;
}

Variable descended(const Problem& p, Scope& s, const Variable& from, const Variable& step) {
  const Variable v = ops::fma(p.x().spread(-step), gradient(p, s, from), from);
  s.guard(p.x().norm2(v));
  return v;
}

Variable next_momentum(const Variable& t, double factor) {
  return (1.0 + ops::sqrt(1.0 + factor * t * t)) * 0.5;
}

bool keeps_images(const Problem& p) { return p.flag("monotone") || p.flag("backtrack"); }

void declare_first_order(const Problem& p, StateList& state) {
  state.add("x", p.x(), Init::x0_or_zero());
  declare_rhs(p, state);
  state.add("L", p.numbers(), 1.0);
  if (keeps_images(p)) state.add("Nx", p.x());
  if (p.flag("monotone")) state.add("F", p.numbers());
  if (p.integer("average", 1) > 1) state.add("sum", p.x());
  if (p.integer("average", 1) > 1) state.add("summed", p.numbers());
}

void add_to_mean(const Problem& p, Scope& s, const Variable& next) {
  const index_t count = p.integer("average", 1);
  if (count <= 1) return;
  const index_t last_without = p.integer("max_iterations", 0) - count;
  const Variable is_in = ops::gt(s.iteration(), last_without);
  const Variable one = is_in.astype(p.x().number_type().dtype);
  s.set("sum", ops::where(is_in, s["sum"] + next, s["sum"]));
  s.set("summed", s["summed"] + one);
}

Variable mean_or_x(const Problem& p, Scope& s) {
  if (p.integer("average", 1) <= 1) return {};
  const Variable count = s["summed"], is_there = ops::gt(count, 0.0);
  const Variable scale = ops::reciprocal(ops::maximum(count, 1.0));
  return ops::where(p.x().spread(is_there), s["sum"] * p.x().spread(scale), s["x"]);
}

void set_up_first_order(const Problem& p, Scope& s) {
  set_up_rhs(p, s);
  if (!keeps_images(p)) return;
  const Variable x = s["x"];
  Variable smooth = ops::zeros_like(s["L"]);
  if (p.has_x0()) {
    const Variable image = applied_normal(p, s, x);
    smooth = smooth_part(p, x, image, s.latest("rhs"));
    s.guard(smooth);  // gives the states memory of their own, for any N
    for (const char* name : {"Nx", "Nz"}) {
      if (s.has(name)) s.set(name, image);
    }
  }
  if (p.flag("monotone")) s.set("F", with_h(p, s, smooth, x));
}

// -- steps with N x and N z in the state ---------------------------------------------------------

namespace {

// True if f(y) is at most its bound at z, f(z) + Re <grad f(z), y - z> + L |y - z|^2 / 2. As f is
// quadratic, the condition is <d, N d> <= L |d|^2 with d = y - z, up to the rounding of N y - N z.
Variable is_bounded(const Problem& p, const Variable& y, const Variable& d, const Variable& image,
                    const Variable& L) {
  const Space& X = p.x();
  const double rounding = rounding_of(X.type().dtype);
  const Variable dd = X.norm2(d), slack = ops::sqrt(dd * X.norm2(y)) * (10 * rounding);
  return ops::le(X.real_dot(d, image), L * (dd + slack));
}

}  // namespace

// y = prox(z - grad(z) / L) with N z at hand; N y is the one application. If the bound of y fails,
// L doubles and all other state stays. x' is the better of y and x, and
//   z' = x' + (t - 1) / t' (y - x), or x' + t / t' (y - x) if x was better,
// so that N x' and N z' are the same sums of N y and N x.
void step_with_images(const Problem& p, Scope& s, bool has_momentum) {
  const Space& X = p.x();
  const Variable x = s["x"], Nx = s["Nx"], L = s["L"], step = ops::reciprocal(L);
  const Variable z = has_momentum ? s["z"] : x, Nz = has_momentum ? s["Nz"] : Nx;
  const Variable v = ops::fma(X.spread(-step), Nz - s["rhs"], z);
  s.guard(X.norm2(v));
  const Variable y = prox_of_h(p, s, v, step), Ny = applied_normal(p, s, y);
  const Variable smooth = smooth_part(p, y, Ny, s.latest("rhs"));
  s.guard(smooth);
  s.number("smooth", smooth);
  Variable is_taken, is_right;  // undefined: always
  if (p.flag("backtrack")) {
    is_right = is_bounded(p, y, y - z, Ny - Nz, L);
    s.set("L", ops::where(is_right, L, L * 2.0));
    s.number("is right", is_right.astype(L.dtype()));
  }
  const bool is_monotone = p.flag("monotone");
  Variable value;
  if (is_monotone || p.flag("objective")) value = with_h(p, s, smooth, y);
  if (is_monotone) is_taken = ops::le(value, s["F"]);
  const auto where = [&](const Variable& condition, const Variable& a, const Variable& b) {
    return condition.defined() ? ops::where(condition, a, b) : a;
  };
  const auto spread = [&](const Variable& condition) {
    return condition.defined() ? X.spread(condition) : condition;
  };
  const Variable is_new = !is_taken.defined()   ? is_right
                          : !is_right.defined() ? is_taken
                                                : ops::logical_and(is_taken, is_right);
  const Variable next = where(spread(is_new), y, x), Nnext = where(spread(is_new), Ny, Nx);
  const Variable moved = y - x;
  if (has_momentum) {
    Variable t = s["t"];
    if (p.flag("restart")) {
      const Variable is_uphill = ops::gt(X.real_dot(z - y, moved), 0.0);
      t = ops::where(is_uphill, ops::full_like(t, 1.0), t);
    }
    const Variable t_next = next_momentum(t),
                   factor = X.spread(where(is_taken, t - 1.0, t) / t_next);
    const Variable is_moved = spread(is_right);
    s.set("z", where(is_moved, ops::fma(factor, moved, next), z));
    s.set("Nz", where(is_moved, ops::fma(factor, Ny - Nx, Nnext), Nz));
    s.set("t", where(is_right, t_next, s["t"]));
  }
  s.set("x", next);
  s.set("Nx", Nnext);
  if (is_monotone) {
    value = where(is_new, value, s["F"]);
    s.set("F", value);
  }
  s.number("change", X.norm2(moved));
  s.number("size", X.norm2(next));
  if (p.flag("objective")) s.number("objective", value);
  add_to_mean(p, s, next);
}

}  // namespace palimpsest::proximal
