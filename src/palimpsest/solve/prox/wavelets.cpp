// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/prox/wavelets.hpp"

#include "palimpsest/base/error.hpp"
#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/prox/node.hpp"

namespace palimpsest {
namespace {

const NamedLinop& wavelet_of(const Prox& g) { return g.linops().front(); }
bool is_shifted(const Prox& g) { return g.attr("shift").as_string() == "random"; }

Axes named_axes(const Prox& g, const char* attribute, std::size_t rank) {
  Axes axes;
  for (const ND& d : g.attr(attribute).as_dims()) axes.push_back(axis_of(*g.dims(), d));
  return from_front(axes, rank);
}

// The size of each coefficient, or that of those that are joined.
Variable size_of(const Prox& g, const Variable& w) {
  const Axes joint = named_axes(g, "joint", w.rank());
  return joint.empty() ? ops::abs(w) : norm_along(w, joint);
}

void declare(const Prox& g, const Space&, StateList& state) {
  if (is_shifted(g)) state.add_key("key");
}

// v with its entries moved on by `shift` along an axis, periodically.
Variable rolled(const Variable& v, const Variable& shift, std::size_t axis) {
  const index_t n = v.type().shape[axis];
  const Variable positions = ops::mod(constant(Tensor::arange(n)) - shift, n);
  return ops::take(v, positions, static_cast<index_t>(axis));
}

Variable thresholded(const Prox& g, const Variable& v, const Variable& t) {
  const DType real = real_of(v.dtype());
  const Variable w = wavelet_of(g)(v);
  const Variable threshold = t.astype(real) * weight_of(g, "lambda", real);
  const bool is_joint = !g.attr("joint").as_dims().empty();
  return wavelet_of(g).H()(is_joint ? shrunk(w, size_of(g, w), threshold)
                                    : soft_threshold(w, threshold));
}

Variable wavelet_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  if (!is_shifted(g)) return thresholded(g, v, t);
  const Axes axes = named_axes(g, "over", v.rank());
  Extents sizes;
  for (const index_t axis : axes) sizes.push_back(v.type().shape[static_cast<std::size_t>(axis)]);
  const index_t wanted = wavelet_of(g).attr("levels").as_integer();
  const index_t levels = wanted == kAutomaticLevels ? wavelet_levels(sizes) : wanted;
  const auto count = static_cast<index_t>(axes.size());
  const Variable shifts = ops::random_integers(s["key"], {count}, 0, index_t{1} << levels);
  s.set("key", ops::next_key(s["key"]));
  Variable moved = v;
  for (index_t k = 0; k < count; ++k) {
    moved = rolled(moved, shifts[k], static_cast<std::size_t>(axes[static_cast<std::size_t>(k)]));
  }
  Variable result = thresholded(g, moved, t);
  for (index_t k = 0; k < count; ++k) {
    const auto axis = static_cast<std::size_t>(axes[static_cast<std::size_t>(k)]);
    result = rolled(result, -shifts[k], axis);
  }
  return result;
}

Variable wavelet_value(const Prox& g, const Variable& x, const Axes& batch) {
  const Variable sizes = size_of(g, wavelet_of(g)(x));
  return sum_besides(sizes, batch) * weight_of(g, "lambda", real_of(x.dtype()));
}

void check(const Prox& g) {
  check_weight(g, "lambda");
  if (!g.dims()) throw ShapeError(who(g) + "dims: got none, expected those of the operand");
  if (&wavelet_of(g).type() == &linop_types::wavelet()) return;
  throw ValueError(who(g) + "got " + wavelet_of(g).name() + ", expected a Wavelet");
}

constexpr ProxType kL1Wavelet{
    .name = "L1Wavelet", .linops = 1, .prox = wavelet_prox, .value = wavelet_value, .check = check};
constexpr ProxType kShiftedL1Wavelet{.name = "ShiftedL1Wavelet",
                                     .linops = 1,
                                     .declare = declare,
                                     .prox = wavelet_prox,
                                     .value = wavelet_value,
                                     .check = check};
PALIMPSEST_REGISTER_PROX(kL1Wavelet);
PALIMPSEST_REGISTER_PROX(kShiftedL1Wavelet);

}  // namespace

Prox L1Wavelet(const Weight& lambda, const Dims& over, const L1WaveletOptions& options) {
  const Dims dims = options.dims ? *options.dims : Dims("...") + over;
  const bool is_random = options.shift == Shift::random;
  ProxParts parts{
      .name = "L1Wavelet",
      .dims = dims,
      .attrs = {{"over", over}, {"joint", options.joint}, {"shift", is_random ? "random" : "none"}},
      .linops = {Wavelet(dims, over, {.family = options.family, .levels = options.levels})}};
  put_weight(parts, "lambda", lambda);
  return make_prox(is_random ? kShiftedL1Wavelet : kL1Wavelet, std::move(parts));
}

}  // namespace palimpsest
