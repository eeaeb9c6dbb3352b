// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/dual_steps.hpp"

#include <utility>

#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/parts.hpp"

namespace palimpsest::proximal {
namespace {

// Of the rule of adaption.
constexpr double kImbalance = 1.5, kDecay = 0.7, kLargestFactor = 10, kLargestTotal = 1e4;
constexpr double kPause = 1.25;  // between two changes, over the iterations so far

// The parts of v along the first axis; v itself for one part.
std::vector<Variable> separate_parts(const Variable& v, std::size_t count) {
  if (count == 1) return {v};
  std::vector<Variable> parts;
  for (index_t k = 0; k < static_cast<index_t>(count); ++k) parts.push_back(v(slice(k, k + 1)));
  return parts;
}

Variable whole(std::vector<Variable> parts) {
  return parts.size() == 1 ? parts[0] : ops::join(0, parts);
}

}  // namespace

std::string of_term(const char* base, index_t i) { return base + std::to_string(i); }
index_t term_count(const Problem& p) { return p.integer("terms", 0); }
Variable sum_of(const Variable& sum, const Variable& term) {
  return sum.defined() ? sum + term : term;
}

Variable shift_of(const Problem& p, const std::string& shift, const Variable& like) {
  if (!p.has_attr(shift)) return {};
  return detail::lent_constant(p.attr(shift).as_tensor()).astype(like.dtype());
}

Variable shifted(const Problem& p, const std::string& shift, const Variable& image) {
  const Variable d = shift_of(p, shift, image);
  return d.defined() ? image - d : image;
}

bool may_leave_range(const NamedLinop& K) {
  const LinopType* const type = &K.type();
  if (type == &linop_types::stack()) {
    return std::any_of(K.linops().begin(), K.linops().end(),
                       [](const NamedLinop& part) { return may_leave_range(part); });
  }
  return type != &linop_types::identity() && type != &linop_types::finite_difference();
}

Variable term_value(const Problem& p, Scope& s, index_t i, const Variable& image) {
  return s.value(of_term("g", i), shifted(p, of_term("d", i), image));
}

double relative(double top, double below) { return top == 0 ? 0 : below > 0 ? top / below : 1; }
Variable relative(const Variable& top, const Variable& below) {
  return ops::where(ops::gt(below, 0.0), top / below, ops::gt(top, 0.0).astype(top.dtype()));
}

ops::Pass one_pass(const Space& space, const std::vector<Variable>& arrays,
                   const std::vector<Variable>& normed, const std::vector<Variable>& leaves) {
  if (space.batch_axes().empty()) {
    ops::Pass pass = ops::one_pass(arrays, normed, leaves);
    for (Variable& norm : pass.norms) norm = space.total(norm);
    return pass;
  }
  ops::Pass pass = ops::one_pass(arrays, {}, leaves);
  for (const Variable& v : normed) {
    const auto at = std::find(arrays.begin(), arrays.end(), v) - arrays.begin();
    const bool is_made = at < static_cast<std::ptrdiff_t>(arrays.size());
    pass.norms.push_back(space.norm2(is_made ? pass.arrays[static_cast<std::size_t>(at)] : v));
  }
  return pass;
}

// -- dual variables ------------------------------------------------------------------------------

Dual::Dual(const Problem& p, std::string of, std::string function)
    : name(std::move(of)), g(std::move(function)), op("A"), space(p.argument_of(g)), parts{name} {}

Dual::Dual(const Problem& p, index_t i) : Dual(p, of_term("u", i), of_term("g", i)) {
  shift = of_term("d", i);
  kept = of_term("Kx", i);
  op = of_term("K", i);
  if (adapts(p) || !takes_norms_of_parts(p.prox(g), space.type())) return;
  TensorType part = space.type();
  const index_t count = std::exchange(part.shape[0], 1);
  space = space.of_type(std::move(part));
  parts.clear();
  for (index_t k = 0; k < count; ++k) parts.push_back(name + "[" + std::to_string(k) + "]");
}

void Dual::declare(StateList& state) const {
  for (const std::string& part : parts) state.add(part, space);
}

Variable Dual::latest(const Scope& s) const {
  std::vector<Variable> values;
  for (const std::string& part : parts) values.push_back(s.latest(part));
  return whole(std::move(values));
}

Variable Dual::old(const Scope& s) const {
  std::vector<Variable> values;
  for (const std::string& part : parts) values.push_back(s[part]);
  return whole(std::move(values));
}

void declare_duals(const Problem& p, StateList& state) {
  for (index_t i = 0; i < term_count(p); ++i) {
    const Dual u(p, i);
    u.declare(state);
    if (adapts(p)) state.add(u.kept, p.range_of(u.op));
  }
}

void set_up_images(const Problem& p, Scope& s) {
  for (index_t i = 0; adapts(p) && p.has_x0() && i < term_count(p); ++i) {
    const Dual u(p, i);
    s.set(u.kept, s.apply(u.op, s["x"]));
  }
}

Variable dual_step(const Problem& p, Scope& s, const Dual& u, const Variable& image,
                   const Variable& distance, const Variable& sigma, DualResidual& residual) {
  const Space& space = u.space;
  const std::size_t count = u.parts.size();
  const std::vector<Variable> images = separate_parts(image, count);
  const std::vector<Variable> distances =
      distance == image ? images : separate_parts(distance, count);
  const Variable step = space.spread(sigma).astype(space.type().dtype);
  std::vector<Variable> leaves = images, aheads, arrays, normed;
  for (std::size_t k = 0; k < count; ++k) {
    leaves.push_back(s[u.parts[k]]);
    aheads.push_back(ops::fma(step, distances[k], leaves.back()));
  }
  const std::vector<Variable> next =
      count > 1 ? conjugate_prox_of_parts(p.prox(u.g), aheads)
                : std::vector<Variable>{s.conjugate_prox(u.g, aheads[0], sigma)};
  for (std::size_t k = 0; k < count; ++k) arrays.push_back(next[k] - s[u.parts[k]]);
  for (std::size_t k = 0; k < count; ++k) {
    arrays.push_back(s.guarded(space, next[k], s[u.parts[k]]));
  }
  normed = arrays;
  Variable before, now;
  if (adapts(p)) {  // K x' instead of K (2 x' - x), and the parts of the residual
    before = s[u.kept];
    now = (image + before) * 0.5;
    leaves.push_back(before);
    arrays.push_back(s.guarded(space, now, before));
    normed.push_back(now);
    normed.push_back((now - before) - arrays[0] * space.spread(ops::reciprocal(sigma)));
  } else {
    normed.insert(normed.end(), images.begin(), images.end());
  }
  const ops::Pass made = one_pass(space, arrays, normed, leaves);
  const auto sum = [&](std::size_t group) {  // over the parts
    Variable of_group;
    for (std::size_t k = 0; k < count; ++k) {
      of_group = sum_of(of_group, made.norms[group * count + k]);
    }
    return of_group;
  };
  for (std::size_t k = 0; k < count; ++k) s.set_as_is(u.parts[k], made.arrays[count + k]);
  const Variable change = sum(0), size = sum(1), image_size = sum(2);
  if (may_leave_range(p.op(u.op))) s.guard(image_size);
  if (may_leave_range(p.prox(u.g)) && count == 1) s.guard(size);
  s.number(u.name + ".size", size);
  s.number(u.name + ".change", change);
  s.number(u.name + ".image", image_size);
  if (adapts(p)) {
    s.set_as_is(u.kept, made.arrays[2]);
    const Variable below = ops::maximum(ops::sqrt(size) / sigma, ops::sqrt(image_size));
    const Variable own = relative(ops::sqrt(made.norms[3]), below);
    residual.top = sum_of(residual.top, made.norms[3]);
    residual.size = sum_of(residual.size, size);
    residual.relative = residual.relative.defined() ? ops::maximum(residual.relative, own) : own;
  }
  return whole({made.arrays.begin(), made.arrays.begin() + static_cast<std::ptrdiff_t>(count)});
}

double dual_residual(const Numbers& n, const std::string& name, const std::string& sigma,
                     double norm_K, double change) {
  const double step = n[sigma];
  const double top = std::sqrt(n[name + ".change"]) / step + norm_K * change;
  return relative(top,
                  std::max(std::sqrt(n[name + ".size"]) / step, std::sqrt(n[name + ".image"])));
}

// -- x -------------------------------------------------------------------------------------------

PrimalStep primal_step(const Problem& p, Scope& s, const Variable& slope, const Variable& tau,
                       std::vector<Variable> leaves) {
  const Space& X = p.x();
  const Variable x = s["x"];
  leaves.push_back(x);
  Variable next = ops::fma(X.spread(-tau).astype(X.type().dtype), slope, x);
  s.number("tau", tau);
  const auto measured = [&](const ops::Pass& made) {
    s.number("size", made.norms[0]);
    s.number("change", made.norms[1]);
  };
  if (!p.has_prox("h")) {
    const Variable change = next - x;
    const ops::Pass made = one_pass(X, {next + change}, {next, change}, leaves);
    s.guard(made.norms[0]);
    measured(made);
    return {(made.arrays[0] + x) * 0.5, made.arrays[0], made.norms[1], made.norms[0]};
  }
  const ops::Pass argument = one_pass(X, {next}, {next}, leaves);
  s.guard(argument.norms[0]);
  next = s.prox("h", argument.arrays[0], tau);
  const ops::Pass made =
      one_pass(X, {next, 2.0 * next - x}, {next, next - x}, {{argument.arrays[0], x}});
  if (may_leave_range(p.prox("h"))) s.guard(made.norms[0]);
  measured(made);
  return {made.arrays[0], made.arrays[1], made.norms[1], made.norms[0]};
}

// -- adaption ------------------------------------------------------------------------------------

bool adapts(const Problem& p) { return p.flag("adapt"); }

void declare_adaption(const Problem& p, StateList& state, double first) {
  if (!adapts(p)) return;
  state.add("turn", p.numbers(), first);
  state.add("exponent", p.numbers(), 0.5);
  state.add("side", p.numbers());
  state.add("total", p.numbers(), 1.0);
}

Variable adapt(Scope& s, const Variable& primal, const Variable& dual) {
  const Variable turn = s["turn"], exponent = s["exponent"], side = s["side"], total = s["total"];
  const Variable one = ops::full_like(total, 1.0);
  const Variable iteration = one * s.iteration().astype(total.dtype());
  const Variable are_known = ops::logical_and(ops::gt(primal, 0.0), ops::gt(dual, 0.0));
  const Variable r = ops::where(are_known, dual / ops::where(are_known, primal, one), one);
  const Variable is_turn = ops::ge(iteration, turn);
  const Variable is_off = ops::logical_and(
      is_turn, ops::logical_or(ops::gt(r, kImbalance), ops::lt(r, 1 / kImbalance)));
  const Variable own = ops::where(ops::gt(r, 1.0), one, -one);
  const Variable has_tipped = ops::logical_and(is_off, ops::lt(own * side, 0.0));
  const Variable next = ops::where(has_tipped, exponent * kDecay, exponent);
  const Variable wanted =
      ops::where(is_off, ops::clip(ops::pow(r, next), 1 / kLargestFactor, kLargestFactor), one);
  const Variable reached = ops::clip(total * wanted, 1 / kLargestTotal, kLargestTotal);
  const Variable factor = ops::where(is_off, reached / total, one);
  s.set("turn", ops::where(is_turn, iteration * kPause, turn));
  s.set("exponent", next);
  s.set("side", ops::where(is_off, own, side));
  s.set("total", ops::where(is_off, reached, total));
  s.number("adapted", ops::ne(factor, 1.0).astype(total.dtype()));
  return factor;
}

double growth_of(const Numbers& n, double change) {
  return n.has("adapted") && n["adapted"] != 0 ? std::numeric_limits<double>::quiet_NaN() : change;
}

}  // namespace palimpsest::proximal
