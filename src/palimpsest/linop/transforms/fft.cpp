// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/fft.hpp"

#include <algorithm>

#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/named/matching.hpp"

namespace palimpsest {
namespace {

// The table of the forward transform; `inverse` exchanges the directions: exp(+...) and the scale
// 1/(n s).
struct Transform {
  explicit Transform(const NamedLinop& A)
      : axes(A.attr("axes").as_integers()),
        options{norm_of(A), A.attr("centered").as_bool()},
        inverse(A.attr("inverse").as_bool()) {}

  static FftNorm norm_of(const NamedLinop& A) {
    const std::string& norm = A.attr("norm").as_string();
    if (norm == "backward") return FftNorm::backward;
    return norm == "forward" ? FftNorm::forward : FftNorm::ortho;
  }
  // The norm whose forward scale is the inverse transform's: 1/(n s).
  FftOptions exchanged() const {
    FftOptions result = options;
    if (options.norm == FftNorm::backward) result.norm = FftNorm::forward;
    if (options.norm == FftNorm::forward) result.norm = FftNorm::backward;
    return result;
  }
  // A^H A = n s^2.
  double power(double n) const {
    const FftNorm norm = (inverse ? exchanged() : options).norm;
    if (norm == FftNorm::ortho) return 1;
    return norm == FftNorm::backward ? n : 1 / n;
  }

  Axes axes;
  FftOptions options;
  bool inverse;
};

Variable fft_fn(const NamedLinop& A, const Variable& x) {
  const Transform t(A);
  return t.inverse ? ops::ifft(x, t.axes, t.options) : ops::fft(x, t.axes, t.options);
}

Variable fft_adj_fn(const NamedLinop& A, const Variable& y) {
  const Transform t(A);
  // The adjoint of the inverse is the forward transform with the inverse's scale.
  return t.inverse ? ops::fft(y, t.axes, t.exchanged()) : ops::fft_adjoint(y, t.axes, t.options);
}

Variable fft_normal_fn(const NamedLinop& A, const Variable& x) {
  const Transform t(A);
  double n = 1;
  for (index_t axis : from_front(t.axes, x.rank())) {
    n *= static_cast<double>(x.type().shape[static_cast<std::size_t>(axis)]);
  }
  const double power = t.power(n);
  return power == 1 ? x : x * power;
}

// The number of points along these axes, where the sizes are known.
std::optional<double> number_of_points(const NamedLinop& A, const Axes& axes) {
  double n = 1;
  for (const ND& d : A.ishape()) {
    if (!find_axis(A.ishape(), d, axes)) continue;
    const auto size = A.size(d);
    if (!size) return std::nullopt;
    n *= static_cast<double>(*size);
  }
  return n;
}

Attributes attributes_of(const Axes& axes, const Attribute& norm, const Attribute& centered,
                         bool inverse) {
  return {{"axes", Attribute(axes)}, {"norm", norm}, {"centered", centered}, {"inverse", inverse}};
}

// True if a product of factors changes along an axis, counted from the end.
bool depends_on(const std::vector<DiagonalFactor>& factors, const Dims& dims, index_t axis) {
  const ND d = dims[static_cast<std::size_t>(static_cast<index_t>(dims.size()) + axis)];
  for (const DiagonalFactor& factor : factors) {
    const auto i = find_axis(dims, d, factor.axes);
    if (i && factor.weight.shape()[*i] != 1) return true;
  }
  return false;
}

// F^H D F: along axes on which D does not depend the transforms cancel but for a factor.
NamedLinop reduced_normal(const NamedLinop& A, const NamedLinop& inner, const Transform& t) {
  if (&inner.type() != &linop_types::diagonal()) return {};
  const std::vector<DiagonalFactor> factors = diagonal_factors(inner);
  const Dims &from = A.ishape(), &to = A.oshape();
  if (from.size() != to.size() || resolve_wildcards(inner.ishape(), to) != to) return {};
  Axes needed, cancelled;
  Dims middle = to;
  for (const index_t axis : t.axes) {
    if (depends_on(factors, to, axis)) {
      needed.push_back(axis);
      continue;
    }
    cancelled.push_back(axis);
    const auto k = static_cast<std::size_t>(static_cast<index_t>(to.size()) + axis);
    middle = middle.slice(0, k) + Dims(from[k]) + middle.slice(k + 1, middle.size());
  }
  if (cancelled.empty()) return {};
  const auto n =
      t.options.norm == FftNorm::ortho ? std::optional<double>(1) : number_of_points(A, cancelled);
  if (!n) return {};
  NamedLinop between = inner;
  between.set_ishape(middle);
  NamedLinop result = between;
  if (!needed.empty()) {
    NamedLinop F = make_linop(
        A.type(), NamedShape(from, middle), {},
        attributes_of(needed, A.attr("norm"), A.attr("centered"), t.inverse != A.is_flipped()));
    DimMap known;
    for (const ND& d : unite(from, middle)) {
      const auto size = d.is_concrete() ? A.size(d) : std::nullopt;
      if (size) known.emplace(d, *size);
    }
    if (!known.empty()) F = F.with_sizes(known);
    // Only with the ortho norm does a flipped transform have the norm of its inverse.
    result = Chain(F, between, F.H());
  }
  const double power = t.power(*n);
  return power == 1 ? result : power * result;
}

NamedLinop fft_normal(const NamedLinop& A, const NamedLinop* inner) {
  const Transform t(A);
  if (inner) {
    const bool plain = !A.is_flipped() || t.options.norm == FftNorm::ortho;
    return plain ? reduced_normal(A, *inner, t) : NamedLinop();
  }
  if (t.options.norm == FftNorm::ortho) return Identity(A.ishape());
  const auto n = number_of_points(A, t.axes);
  return n ? Scalar(t.power(*n), A.ishape()) : NamedLinop();
}

NamedLinop fft_inverse(const NamedLinop& A) {
  const Transform t(A);
  if (t.options.norm == FftNorm::ortho) return A.H();
  // The inverse of the adjoint is the adjoint of the inverse.
  if (A.is_flipped()) return A.H().inverse().H();
  NamedShape shape = A.shape().H();
  return make_linop(A.type(), std::move(shape), {},
                    attributes_of(t.axes, A.attr("norm"), A.attr("centered"), !t.inverse))
      .named(t.inverse ? "Fft" : "Fft.inverse");
}

NamedLinop fft_split(const NamedLinop& A, const Tile& tile) {
  const Axes axes = A.attr("axes").as_integers();
  return split_besides(A, tile, axes, axes, "it is transformed");
}

void check_fft(const NamedLinop& A) {
  std::size_t ndim = 0;
  for (const index_t axis : A.attr("axes").as_integers()) {
    ndim = std::max(ndim, static_cast<std::size_t>(-axis));
  }
  for (const Dims& dims : {A.ishape(), A.oshape()}) {
    if (dims.size() < ndim) {
      throw ValueError(who(A) + "grid: got " + dims.str() + ", expected at least " +
                       std::to_string(ndim) + " names");
    }
  }
}

std::string norm_name(FftNorm norm) {
  if (norm == FftNorm::ortho) return "ortho";
  return norm == FftNorm::backward ? "backward" : "forward";
}

}  // namespace

const LinopType& linop_types::fft() {
  return PALIMPSEST_LINOP_TYPE(.name = "Fft",
                               .functions = {.fn = fft_fn,
                                             .adj_fn = fft_adj_fn,
                                             .normal_fn = fft_normal_fn,
                                             .split = fft_split},
                               .adj_normal_fn = fft_normal_fn, .normal = fft_normal,
                               .check = check_fft, .inverse = fft_inverse);
}

NamedLinop Fft(int ndim, FftLinopOptions options) {
  if (ndim < 1) {
    throw ValueError("[Fft] ndim: got " + std::to_string(ndim) + ", expected at least 1");
  }
  const auto n = static_cast<std::size_t>(ndim);
  const Grid grid = options.grid.value_or(Grid{default_names(n, false), default_names(n, true)});
  for (const Dims& dims : {grid.in, grid.out}) {
    if (dims.size() != n || dims.has_ellipsis()) {
      throw ValueError("[Fft] grid: got " + arrow(grid.in, grid.out) + ", expected " +
                       std::to_string(n) + " names on each side");
    }
  }
  return make_linop(linop_types::fft(),
                    NamedShape(options.batch + grid.in, options.batch + grid.out), {},
                    attributes_of(last_axes(n), norm_name(options.norm), options.centered, false));
}

}  // namespace palimpsest
