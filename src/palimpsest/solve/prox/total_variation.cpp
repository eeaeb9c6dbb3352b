// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/prox/total_variation.hpp"

#include <map>

#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/node.hpp"
#include "palimpsest/solve/prox/parts.hpp"

namespace palimpsest {
namespace {

const ND kAxis("D");

Dims operand_dims(const Dims& over, const TotalVariationOptions& options) {
  return options.dims ? *options.dims : Dims("...") + over;
}

NamedLinop gradient_of(const Dims& dims, const Dims& over, const TotalVariationOptions& options) {
  return Gradient(dims, over,
                  {.boundary = options.boundary, .out = kAxis, .direction = options.direction});
}

// The norm of the gradient: joint over its axis, and over other dimensions.
Dims joined(const Dims& joint) { return Dims(kAxis) + joint; }

// -- the function itself -------------------------------------------------------------------------

const NamedLinop& gradient_in(const Prox& g) { return g.linops().front(); }

// The norm of the gradient at each point, or the size of each component.
Variable size_of(const Prox& g, const Variable& slope) {
  if (!g.attr("isotropic").as_bool()) return ops::abs(slope);
  Axes axes{axis_of(gradient_in(g).oshape(), kAxis)};
  for (const ND& d : g.attr("joint").as_dims()) {
    axes.push_back(axis_of(gradient_in(g).oshape(), d));
  }
  return norm_along(slope, from_front(axes, slope.rank()));
}

// A part of the dual that is larger than the threshold is cut back to it.
Variable projected(const Prox& g, const Variable& u, const Variable& bound) {
  return u * cut_back(size_of(g, u), bound);
}

Variable tv_of(const Prox& g, const Variable& slope, const Axes& batch) {
  return sum_besides(size_of(g, slope), batch);
}

void declare_total_variation(const Prox& g, const Space& v, StateList& state) {
  const Variable slope = gradient_in(g)(make_input(v.type(), "v"));
  state.add("dual", Space(slope.type(), Dims(kAxis) + *g.dims()));
}

// min over |u| <= t lambda of |v - K^H u|^2 / 2, by projected gradients with momentum from the dual
// of the last call; x = v - K^H u. The gap between t lambda TV(x) and Re <u, K x>, relative to the
// objective at x, ends the loop.
Variable tv_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const NamedLinop& K = gradient_in(g);
  const DType real = real_of(v.dtype());
  const Variable bound = t.astype(real) * weight_of(g, "lambda", real);
  const double step = 1.0 / (4.0 * static_cast<double>(K.linop_count()));
  const Variable start = projected(g, s["dual"], bound);
  const Variable one = constant(Tensor::ones({}, real));
  ops::LoopOptions options;
  options.states = {start, start, one, one};
  options.n_steps = Operand(g.attr("inner").as_integer());
  const auto body = [&](const std::vector<Variable>& a) -> std::vector<Variable> {
    const Variable &u = a[0], &w = a[1], &momentum = a[2];
    const Variable x = v - K.H()(w);
    const Variable slope = K(x);
    const Variable next = projected(g, w + slope * step, bound);
    const Variable after = (1.0 + ops::sqrt(1.0 + 4.0 * momentum * momentum)) * 0.5;
    const Variable ahead = next + (next - u) * ((momentum - 1.0) / after);
    const Variable at = v - K.H()(next), there = K(at);
    const Variable weighted = tv_of(g, there, {}) * bound;
    const Variable gap = weighted - ops::real(ops::vdot(next, there));
    const Variable objective = weighted + ops::norm2(at - v) * 0.5;
    return {next, ahead, after, gap / ops::maximum(objective, 1e-30)};
  };
  const double tolerance = g.attr("inner_tolerance").as_real();
  options.until = [tolerance](const std::vector<Variable>&, const std::vector<Variable>& next) {
    return ops::le(next[3], tolerance);
  };
  const Variable u = ops::loop(body, options).last(0);
  s.set("dual", u);
  return v - K.H()(u);
}

Variable tv_value(const Prox& g, const Variable& x, const Axes& batch) {
  Axes shifted;  // behind the axis of the gradient
  for (const index_t axis : batch) shifted.push_back(axis + 1);
  return tv_of(g, gradient_in(g)(x), shifted) * weight_of(g, "lambda", real_of(x.dtype()));
}

void check_total_variation(const Prox& g) {
  check_weight(g, "lambda");
  if (g.attr("inner").as_integer() < 1) {
    throw ValueError(who(g) + "inner: got " + g.attr("inner").str() + ", expected at least 1");
  }
  const double tolerance = g.attr("inner_tolerance").as_real();
  if (!(tolerance >= 0)) {
    throw ValueError(who(g) + "inner_tolerance: got " + g.attr("inner_tolerance").str() +
                     ", expected at least 0");
  }
}

bool is_separable_total_variation(const Prox& g, const ND& d) {
  return !g.attr("joint").as_dims().contains(d) && can_split(gradient_in(g), d);
}

DifferenceBoundary boundary_named(const std::string& name) {
  if (name == "periodic") return DifferenceBoundary::periodic;
  return name == "neumann" ? DifferenceBoundary::neumann : DifferenceBoundary::zero;
}

// The same gradient of an operand with these dimensions.
NamedLinop gradient_on(const NamedLinop& K, const Dims& dims) {
  Dims over;
  for (const NamedLinop& part : K.linops()) {
    const index_t axis = part.attr("axis").as_integer();
    const auto rank = static_cast<index_t>(part.ishape().size());
    over.push_back(part.ishape()[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)]);
  }
  expect_names("TotalVariation", over, dims);
  const NamedLinop& first = K.linops().front();
  const bool is_backward = first.attr("direction").as_string() == "backward";
  return Gradient(
      dims, over,
      {.boundary = boundary_named(first.attr("boundary").as_string()),
       .spacing = first.attr("spacing").as_real(),
       .out = K.oshape().front(),
       .direction = is_backward ? DifferenceDirection::backward : DifferenceDirection::forward});
}

constexpr ProxType kTotalVariation{.name = "TotalVariation",
                                   .linops = 1,
                                   .declare = declare_total_variation,
                                   .prox = tv_prox,
                                   .value = tv_value,
                                   .check = check_total_variation,
                                   .is_separable = is_separable_total_variation};
PALIMPSEST_REGISTER_PROX(kTotalVariation);

}  // namespace

NamedLinop bound_operator(const NamedLinop& K, const Dims& x) {
  if (!lies_elsewhere(K.ishape(), x)) return K;
  if (K.name() == "Gradient" && &K.type() == &linop_types::stack()) return gradient_on(K, x);
  if (&K.type() == &linop_types::wavelet()) return wavelet_on(K, x);
  const auto has = [&](const ND& d) { return d.is_wildcard() || x.contains(d); };
  if (!std::all_of(K.ishape().begin(), K.ishape().end(), has)) return K;
  throw ShapeError("[" + K.name() + "] Mismatched shape: got " + K.ishape().str() +
                   ", expected that of x, " + x.str());
}

Term tv_term(const Weight& lambda, const Dims& over, const TotalVariationOptions& options) {
  const NamedLinop K = gradient_of(operand_dims(over, options), over, options);
  const Prox g = options.isotropic ? L21(lambda, joined(options.joint), K.oshape()) : L1(lambda);
  return {.g = g, .K = K};
}

namespace {

// Sum of operators on the parts of the unknown; Zero for parts without one.
NamedLinop on_parts(const std::map<std::size_t, NamedLinop>& of_parts, std::size_t count,
                    const Dims& dims, const ND& part) {
  std::vector<NamedLinop> list;
  for (std::size_t k = 0; k < count; ++k) {
    const auto found = of_parts.find(k);
    list.push_back(found == of_parts.end() ? Zero(dims) : found->second);
  }
  return Stack(std::move(list), {.in = {part, 0}});
}

Prox times(const Weight& lambda, double alpha, const char* name, const Dims& dims) {
  if (!(alpha >= 0) || !std::isfinite(alpha)) {
    throw ValueError("[tgv_objective] " + std::string(name) + ": got " + Attribute(alpha).str() +
                     ", expected a number that is not negative");
  }
  if (lambda.number()) return L21(*lambda.number() * alpha, kAxis, dims);
  return weighted(L21(lambda, kAxis, dims), alpha);
}

}  // namespace

Objective tgv_objective(const NamedLinop& A, const Weight& lambda, const Dims& over,
                        const TgvOptions& options) {
  const Dims& dims = A.ishape();
  const std::size_t D = over.size(), parts = 1 + D;
  if (over.empty()) {
    throw ShapeError("[tgv_objective] over: got none, expected at least one dimension");
  }
  const bool is_forward = options.direction == DifferenceDirection::forward;
  const DifferenceDirection other =
      is_forward ? DifferenceDirection::backward : DifferenceDirection::forward;
  const auto difference = [&](std::size_t i, DifferenceDirection direction) {
    return FiniteDifference(dims, over[i], {.boundary = options.boundary, .direction = direction});
  };
  std::vector<NamedLinop> first, second;
  for (std::size_t i = 0; i < D; ++i) {
    first.push_back(
        on_parts({{0, difference(i, options.direction)}, {1 + i, -1.0 * Identity(dims)}}, parts,
                 dims, options.part));
    second.push_back(on_parts({{1 + i, difference(i, other)}}, parts, dims, options.part));
    for (std::size_t j = 0; j < i; ++j) {  // twice the square of half the sum
      const double half = std::sqrt(0.5);
      second.push_back(
          on_parts({{1 + i, half * difference(j, other)}, {1 + j, half * difference(i, other)}},
                   parts, dims, options.part));
    }
  }
  const NamedLinop K = Stack(std::move(first), {.out = {kAxis, 0}});
  const NamedLinop E = Stack(std::move(second), {.out = {kAxis, 0}});
  Objective f{.A = A * on_parts({{0, Identity(dims)}}, parts, dims, options.part)};
  f.terms.push_back({.g = times(lambda, options.alpha1, "alpha1", K.oshape()), .K = K});
  f.terms.push_back({.g = times(lambda, options.alpha0, "alpha0", E.oshape()), .K = E});
  return f;
}

Prox TotalVariation(const Weight& lambda, const Dims& over, const TotalVariationOptions& options) {
  const Dims dims = operand_dims(over, options);
  ProxParts parts{.dims = dims,
                  .attrs = {{"isotropic", options.isotropic},
                            {"joint", options.joint},
                            {"inner", options.inner},
                            {"inner_tolerance", options.inner_tolerance}},
                  .linops = {gradient_of(dims, over, options)}};
  put_weight(parts, "lambda", lambda);
  return make_prox(kTotalVariation, std::move(parts));
}

}  // namespace palimpsest
