// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/prox/wavelets.hpp"

#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
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
Variable size_of_coefficients(const Prox& g, const Variable& w) {
  const Axes joint = named_axes(g, "joint", w.rank());
  return joint.empty() ? ops::abs(w) : norm_along(w, joint);
}

void declare_wavelet(const Prox& g, const Space&, StateList& state) {
  if (is_shifted(g)) state.add_key("key");
}

std::vector<double> level_weights_of(const Prox& g) {
  std::vector<double> weights;
  for (const Attribute& a : g.attr("level_weights").as_list()) weights.push_back(a.as_real());
  return weights;
}

index_t levels_of(const Prox& g, const Variable& v) {
  const index_t wanted = wavelet_of(g).attr("levels").as_integer();
  if (wanted != kAutomaticLevels) return wanted;
  Extents sizes;
  for (const index_t axis : named_axes(g, "over", v.rank())) {
    sizes.push_back(v.type().shape[static_cast<std::size_t>(axis)]);
  }
  return wavelet_levels(sizes);
}

// The level of each position along an axis: 0 of the approximation, 1 of the coarsest details, ..
// It has extent 1 along all other axes.
Variable levels_along(index_t n, index_t levels, std::size_t axis, std::size_t rank) {
  std::vector<float> level(static_cast<std::size_t>(n), 0);
  index_t size = n;
  for (index_t k = levels; k > 0; --k) {
    const index_t half = (size + 1) / 2;
    std::fill(level.begin() + half, level.begin() + size, static_cast<float>(k));
    size = half;
  }
  Extents extents(rank, 1);
  extents[axis] = n;
  return constant(Tensor::from<float>(level).reshape(extents));
}

// lambda times the weight of each coefficient's level, which is the finest of its positions'.
Variable weights_of(const Prox& g, const Variable& v) {
  const DType real = real_of(v.dtype());
  const Variable lambda = weight_of(g, "lambda", real);
  const std::vector<double> weights = level_weights_of(g);
  if (weights.empty()) return lambda;
  const index_t levels = levels_of(g, v);
  if (static_cast<index_t>(weights.size()) != levels + 1) {
    throw ValueError(who(g) + "level_weights: got " + std::to_string(weights.size()) +
                     ", expected " + std::to_string(levels + 1) + ", one more than levels");
  }
  Variable level;
  for (const index_t axis : named_axes(g, "over", v.rank())) {
    const auto at = static_cast<std::size_t>(axis);
    const Variable own = levels_along(v.type().shape[at], levels, at, v.rank());
    level = level.defined() ? ops::maximum(level, own) : own;
  }
  Variable weight = ops::full_like(level.astype(real), weights[0]);
  for (std::size_t k = 1; k < weights.size(); ++k) {
    const Variable is_of_level = ops::eq(level, static_cast<double>(k));
    weight = ops::where(is_of_level, ops::full_like(weight, weights[k]), weight);
  }
  return weight * lambda;
}

// Thresholds the coefficients w of v.
Variable thresholded(const Prox& g, const Variable& v, const Variable& w, const Variable& t) {
  const Variable threshold = t.astype(real_of(v.dtype())) * weights_of(g, v);
  const bool is_joint = !g.attr("joint").as_dims().empty();
  return is_joint ? shrunk(w, size_of_coefficients(g, w), threshold) : soft_threshold(w, threshold);
}

Variable wavelet_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const NamedLinop& W = wavelet_of(g);
  if (!is_shifted(g)) return W.H()(thresholded(g, v, W(v), t));
  const auto count = static_cast<index_t>(named_axes(g, "over", v.rank()).size());
  const Variable drawn = ops::random_integers(s["key"], {count}, 0, index_t{1} << levels_of(g, v));
  s.set("key", ops::next_key(s["key"]));
  std::vector<Variable> shifts;
  for (index_t k = 0; k < count; ++k) shifts.push_back(drawn[k]);
  return shifted_wavelet_adjoint(W, thresholded(g, v, shifted_wavelet(W, v, shifts), t), shifts);
}

Variable wavelet_value(const Prox& g, const Variable& x, const Axes& batch) {
  return sum_besides(size_of_coefficients(g, wavelet_of(g)(x)) * weights_of(g, x), batch);
}

void check_wavelet(const Prox& g) {
  check_weight(g, "lambda");
  for (const double weight : level_weights_of(g)) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    throw ValueError(who(g) + "level_weights: got " + Attribute(weight).str() +
                     ", expected numbers that are not negative");
  }
  if (!g.dims()) throw ShapeError(who(g) + "dims: got none, expected those of the operand");
  if (&wavelet_of(g).type() == &linop_types::wavelet()) return;
  throw ValueError(who(g) + "got " + wavelet_of(g).name() + ", expected a Wavelet");
}

bool is_separable_wavelet(const Prox& g, const ND& d) {
  return !g.attr("over").as_dims().contains(d) && !g.attr("joint").as_dims().contains(d);
}

constexpr ProxType kL1Wavelet{.name = "L1Wavelet",
                              .linops = 1,
                              .prox = wavelet_prox,
                              .value = wavelet_value,
                              .check = check_wavelet,
                              .is_separable = is_separable_wavelet};
constexpr ProxType kShiftedL1Wavelet = [] {
  ProxType type = kL1Wavelet;
  type.name = "ShiftedL1Wavelet";
  type.declare = declare_wavelet;
  return type;
}();
PALIMPSEST_REGISTER_PROX(kL1Wavelet);
PALIMPSEST_REGISTER_PROX(kShiftedL1Wavelet);

}  // namespace

NamedLinop wavelet_on(const NamedLinop& W, const Dims& dims) {
  const auto rank = static_cast<index_t>(W.ishape().size());
  Dims over;
  for (const index_t axis : W.attr("axes").as_integers()) {
    over.push_back(W.ishape()[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)]);
  }
  expect_names("L1Wavelet", over, dims);
  return Wavelet(dims, over,
                 {.family = W.attr("family").as_string(),
                  .levels = static_cast<int>(W.attr("levels").as_integer())});
}

Prox L1Wavelet(const Weight& lambda, const Dims& over, const L1WaveletOptions& options) {
  const Dims dims = options.dims ? *options.dims : Dims("...") + over;
  const bool is_random = options.shift == Shift::random;
  ProxParts parts{
      .name = "L1Wavelet",
      .dims = dims,
      .attrs = {{"over", over},
                {"joint", options.joint},
                {"shift", is_random ? "random" : "none"},
                {"level_weights",
                 Attribute::List(options.level_weights.begin(), options.level_weights.end())}},
      .linops = {Wavelet(dims, over, {.family = options.family, .levels = options.levels})}};
  put_weight(parts, "lambda", lambda);
  return make_prox(is_random ? kShiftedL1Wavelet : kL1Wavelet, std::move(parts));
}

}  // namespace palimpsest
