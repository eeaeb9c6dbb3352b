// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/first_order.hpp"

#include "palimpsest/ops/ops.hpp"

namespace palimpsest::proximal {

Variable prox_of_h(const Problem& p, Scope& s, const Variable& v, const Variable& step) {
  return p.has_prox("h") ? s.prox("h", v, step) : v;
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

Variable smooth_part(const Problem& p, Scope& s, const Variable& x, const Variable& image) {
  return p.x().real_dot(x, image) * 0.5 - p.x().real_dot(x, s.latest("rhs"));
}

Variable with_h(const Problem& p, Scope& s, const Variable& smooth, const Variable& x) {
  return p.has_prox("h") ? smooth + s.value("h", x) : smooth;
}

void set_up_first_order(const Problem& p, Scope& s) {
  set_up_rhs(p, s);
  if (!keeps_images(p)) return;
  const Variable x = s["x"];
  Variable smooth = ops::zeros_like(s["L"]);
  if (p.has_x0()) {
    const Variable image = applied_normal(p, s, x);
    smooth = smooth_part(p, s, x, image);
    s.guard(smooth);  // so that the states get memory of their own, whatever N is
    for (const char* name : {"Nx", "Nz"}) {
      if (s.has(name)) s.set(name, image);
    }
  }
  if (p.flag("monotone")) s.set("F", with_h(p, s, smooth, x));
}

}  // namespace palimpsest::proximal
