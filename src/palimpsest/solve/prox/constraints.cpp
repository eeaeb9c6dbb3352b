// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/prox/constraints.hpp"

#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/node.hpp"
#include "palimpsest/solve/prox/parts.hpp"

namespace palimpsest {
namespace {

constexpr double kTolerance = 1e-6;

// Elements that differ from their projection by more than a part of the largest one.
Variable outside(const Variable& x, const Variable& projected, const Axes& batch) {
  const Variable distance = ops::abs(x - projected);
  const Variable largest = ops::abs(x).max({}, /*keepdims=*/true);
  return indicator(ops::gt(distance, largest * kTolerance), real_of(x.dtype()), batch);
}

template <Variable (*project)(const Prox& g, const Variable& v)>
Variable project_prox(const Prox& g, const Variable& v, const Variable&, StateScope&) {
  return project(g, v);
}
template <Variable (*project)(const Prox& g, const Variable& v)>
Variable project_value(const Prox& g, const Variable& x, const Axes& batch) {
  return outside(x, project(g, x), batch);
}
template <Variable (*project)(const Prox& g, const Variable& v)>
constexpr ProxType projection(std::string_view name, void (*check)(const Prox& g) = nullptr) {
  return {.name = name,
          .prox = project_prox<project>,
          .value = project_value<project>,
          .check = check,
          .is_separable = is_separable_everywhere,
          .is_elementwise = true};
}

Variable into_box(const Prox& g, const Variable& v) {
  if (is_complex(v.dtype())) throw DTypeError(who(g) + "got complex numbers, expected real ones");
  return ops::clip(v, g.attr("lo").as_real(), g.attr("hi").as_real());
}

void check_box(const Prox& g) {
  if (g.attr("lo").as_real() <= g.attr("hi").as_real()) return;
  throw ValueError(who(g) + "lo: got " + g.attr("lo").str() +
                   ", expected at most hi = " + g.attr("hi").str());
}

// The real part; as a complex number if v is complex.
Variable real_part(const Variable& v) {
  return is_complex(v.dtype()) ? ops::elementwise(ScalarOp::real, {v}) : v;
}
Variable non_negative(const Prox&, const Variable& v) {
  return ops::maximum(real_part(v), 0.0).astype(v.dtype());
}
Variable real_valued(const Prox&, const Variable& v) { return real_part(v).astype(v.dtype()); }

Variable into_ball(const Prox& g, const Variable& v) {
  const Variable radius = weight_of(g, "radius", real_of(v.dtype()));
  const bool has_center = g.has_param("center");
  const Variable center = has_center ? param_like(g, "center", v) : Variable();
  const Variable from = has_center ? v - center : v;
  const Variable scale = cut_back(norm_along(from, axes_over(g, v.rank())), radius);
  return has_center ? center + from * scale : from * scale;
}

constexpr ProxType kBox = projection<into_box>("Box", check_box);
constexpr ProxType kNonNegative = projection<non_negative>("NonNegative");
constexpr ProxType kRealValued = projection<real_valued>("RealValued");
constexpr ProxType kBall = [] {
  ProxType type = projection<into_ball>("Ball", [](const Prox& g) { check_weight(g, "radius"); });
  type.is_separable = is_separable_besides_over;
  type.is_elementwise = false;
  return type;
}();
PALIMPSEST_REGISTER_PROX(kBox);
PALIMPSEST_REGISTER_PROX(kNonNegative);
PALIMPSEST_REGISTER_PROX(kRealValued);
PALIMPSEST_REGISTER_PROX(kBall);

// -- affine --------------------------------------------------------------------------------------

const NamedLinop& linop_of(const Prox& g) { return g.linops().front(); }

Variable misfit(const Prox& g, const Variable& v) {
  const Variable image = linop_of(g)(v);
  return image - g.param("c").var().astype(image.dtype());
}

// y of B B^H y = B v - c, by conjugate gradients from 0 until the residual is only rounding.
Variable multiplier(const Prox& g, const Variable& right) {
  const NamedLinop& B = linop_of(g);
  const double rounding = rounding_of(right.dtype());
  const Variable bound = ops::norm2(right) * (rounding * rounding);
  ops::LoopOptions options;
  options.states = {ops::zeros_like(right), right, right, ops::norm2(right)};
  options.fixed = {bound};
  options.n_steps = Operand(g.attr("inner").as_integer());
  const auto body = [&](const std::vector<Variable>& s) -> std::vector<Variable> {
    const Variable &y = s[0], &r = s[1], &p = s[2], &rr = s[3];
    const Variable q = B(B.H()(p));
    const Variable pq = ops::real(ops::vdot(p, q));
    const Variable goes_on = ops::logical_and(ops::gt(rr, s[4]), ops::gt(pq, 0.0));
    const Variable alpha = ops::where(goes_on, rr / pq, ops::zeros_like(pq));
    const Variable next_r = ops::fma(-alpha, q, r), next_rr = ops::norm2(next_r);
    const Variable beta = ops::where(ops::gt(rr, 0.0), next_rr / rr, ops::zeros_like(rr));
    return {ops::fma(alpha, p, y), next_r, ops::fma(beta, p, next_r), next_rr};
  };
  options.until = [](const std::vector<Variable>& s, const std::vector<Variable>& next) {
    return ops::le(next[3], s[4]);
  };
  return ops::loop(body, options).last(0);
}

Variable onto_affine(const Prox& g, const Variable& v) {
  return v - linop_of(g).H()(multiplier(g, misfit(g, v)));
}

void check_affine(const Prox& g) {
  if (g.attr("inner").as_integer() > 0) return;
  throw ValueError(who(g) + "inner: got " + g.attr("inner").str() + ", expected at least 1");
}

// B x and c are compared for each element of the batch.
Variable affine_value(const Prox& g, const Variable& x, const Axes& batch) {
  const NamedLinop& B = linop_of(g);
  const Variable image = B(x), rest = misfit(g, x), c = image - rest;
  Axes kept;
  for (const index_t axis : batch) {
    const Dims dims = B.ishape();
    kept.push_back(axis_of(B.oshape(), dims[static_cast<std::size_t>(axis)]));
  }
  kept = from_front(kept, image.rank());
  const Axes others = other_axes(kept, image.rank());
  const auto largest = [&](const Variable& v) {
    return ops::abs(v).max(others, /*keepdims=*/true);
  };
  const Variable size = ops::maximum(largest(image), largest(c));
  return indicator(ops::gt(largest(rest), size * kTolerance), real_of(x.dtype()), kept);
}

constexpr ProxType kAffine{.name = "Affine",
                           .linops = 1,
                           .prox = project_prox<onto_affine>,
                           .value = affine_value,
                           .check = check_affine,
                           .is_separable = [](const Prox& g, const ND& d) {
                             return linop_of(g).ishape().contains(d) && can_split(linop_of(g), d);
                           }};
PALIMPSEST_REGISTER_PROX(kAffine);

}  // namespace

Dims parameter_dims(const Prox& g) {
  return &g.type() == &kAffine ? linop_of(g).oshape() : *g.dims();
}

Prox Box(double lo, double hi) { return make_prox(kBox, {.attrs = {{"lo", lo}, {"hi", hi}}}); }
Prox NonNegative() { return make_prox(kNonNegative); }
Prox RealValued() { return make_prox(kRealValued); }

Prox Ball(const Weight& radius, const BallOptions& options) {
  ProxParts parts{.dims = options.dims, .attrs = {{"over", options.over}}};
  put_weight(parts, "radius", radius);
  if (options.center) parts.params.emplace_back("center", *options.center);
  return make_prox(kBall, std::move(parts));
}

Prox Affine(const NamedLinop& B, const Tensor& c, AffineOptions options) {
  return make_prox(kAffine, {.dims = B.ishape(),
                             .params = {{"c", Parameter(c)}},
                             .attrs = {{"inner", options.inner}},
                             .linops = {B}});
}

}  // namespace palimpsest
