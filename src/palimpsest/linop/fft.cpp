// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/fft.hpp"

#include <cmath>

#include "palimpsest/linop/axes.hpp"
#include "palimpsest/linop/builtin_types.hpp"
#include "palimpsest/linop/identity.hpp"
#include "palimpsest/linop/node.hpp"
#include "palimpsest/linop/scalar.hpp"
#include "palimpsest/ops/elementwise.hpp"

namespace palimpsest {
namespace {

// The table of the forward transform; `inverse` exchanges the directions: exp(+...) and the scale
// 1/(n s).
struct Transform {
  explicit Transform(const NamedLinop& A)
      : axes(last_axes(static_cast<std::size_t>(A.attr("ndim").as_integer()))),
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

// The number of transformed points, where the sizes are known.
std::optional<double> points(const NamedLinop& A, std::size_t ndim) {
  double n = 1;
  const Dims& dims = A.ishape();
  for (std::size_t i = dims.size() - ndim; i < dims.size(); ++i) {
    const auto size = A.size(dims[i]);
    if (!size) return std::nullopt;
    n *= static_cast<double>(*size);
  }
  return n;
}

NamedLinop fft_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (inner) return {};
  const Transform t(A);
  if (t.options.norm == FftNorm::ortho) return Identity(A.ishape());
  const auto n = points(A, t.axes.size());
  return n ? Scalar(t.power(*n), A.ishape()) : NamedLinop();
}

NamedLinop fft_inverse(const NamedLinop& A) {
  const Transform t(A);
  if (t.options.norm == FftNorm::ortho) return A.H();
  // The inverse of the adjoint is the adjoint of the inverse.
  if (A.is_flipped()) return A.H().inverse().H();
  NamedShape shape = A.shape().H();
  return make_linop(A.type(), std::move(shape), {},
                    {{"ndim", A.attr("ndim")},
                     {"norm", A.attr("norm")},
                     {"centered", A.attr("centered")},
                     {"inverse", !t.inverse}})
      .named(t.inverse ? "Fft" : "Fft.inverse");
}

void check_fft(const NamedLinop& A) {
  const auto ndim = static_cast<std::size_t>(A.attr("ndim").as_integer());
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
  static const LinopType type{
      .name = "Fft",
      .functions = {.fn = fft_fn, .adj_fn = fft_adj_fn, .normal_fn = fft_normal_fn},
      .adj_normal_fn = fft_normal_fn,
      .normal = fft_normal,
      .check = check_fft,
      .inverse = fft_inverse,
  };
  return type;
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
                    {{"ndim", ndim},
                     {"norm", norm_name(options.norm)},
                     {"centered", options.centered},
                     {"inverse", false}});
}

}  // namespace palimpsest
