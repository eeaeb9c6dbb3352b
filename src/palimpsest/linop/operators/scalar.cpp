// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/scalar.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "palimpsest/linop/core/number_product.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"

namespace palimpsest {
namespace {

// The last factor of x, if it is a number.
std::optional<std::complex<double>> number_in_front(const Variable& x) {
  const Apply owner = x.owner();
  if (!owner.defined()) return {};
  const auto* op = dynamic_cast<const ops::Elementwise*>(&owner.op());
  if (!op || op->scalar_op() != ScalarOp::mul || !owner.input(1).is_constant()) return {};
  const Tensor& value = owner.input(1).constant_value();
  if (value.numel() != 1 || !is_inexact(value.dtype())) return {};
  return value.to(DType::complex128).item<std::complex<double>>();
}

double size_of(std::complex<double> z) { return std::max(std::abs(z.real()), std::abs(z.imag())); }

bool is_finite(std::complex<double> z) {
  return std::isfinite(z.real()) && std::isfinite(z.imag());
}

// True if a number other than 0 would become infinite or 0, or lose digits, in this precision.
bool is_out_of_range(std::complex<double> alpha, DType dtype) {
  const double size = size_of(alpha);
  if (alpha == 0.0 || !is_finite(alpha) || real_of(dtype) != DType::float32) return false;
  return size > std::numeric_limits<float>::max() || size < std::numeric_limits<float>::min();
}

// Neighbouring numbers become one, computed in double precision. A number out of the range of x's
// precision is applied as factors within it, so that the next number finds it whole.
Variable times(const Variable& x, std::complex<double> alpha) {
  if (const auto beta = number_in_front(x)) {
    const Variable& before = x.owner().input(0);
    const auto both = product_of_numbers(alpha, *beta);
    if (both && is_complex(before.dtype()) == is_complex(x.dtype())) return times(before, *both);
  }
  Variable y = x;
  const double step = size_of(alpha) > 1 ? 0x1p120 : 0x1p-120;
  for (; is_out_of_range(alpha, x.dtype()); alpha /= step) y = y * step;
  return alpha.imag() == 0 ? y * alpha.real() : y * alpha;
}

// |alpha|^2 in double precision; none where it is out of range.
std::optional<double> power_of(std::complex<double> alpha) {
  const auto power = product_of_numbers(alpha, std::conj(alpha));
  return power ? std::optional(std::norm(alpha)) : std::nullopt;
}

Variable scalar_fn(const NamedLinop& A, const Variable& x) {
  if (A.has_param("weight")) return x * A.param("weight").var();
  return times(x, A.attr("alpha").as_complex());
}

Variable scalar_adj_fn(const NamedLinop& A, const Variable& y) {
  if (A.has_param("weight")) return y * ops::conj(A.param("weight").var());
  return times(y, std::conj(A.attr("alpha").as_complex()));
}

Variable scalar_normal_fn(const NamedLinop& A, const Variable& x) {
  if (A.has_param("weight")) return x * ops::abs2(A.param("weight").var());
  const std::complex<double> alpha = A.attr("alpha").as_complex();
  if (const auto power = power_of(alpha)) return times(x, *power);
  return times(times(x, alpha), std::conj(alpha));
}

// |alpha|^2 of a number; a parameter has the generic normal operator, with scalar_normal_fn.
NamedLinop scalar_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (A.has_param("weight")) return {};
  const std::complex<double> alpha = A.attr("alpha").as_complex();
  // Only real numbers commute with operators that are linear over the reals.
  if (inner && is_real_linear(*inner) && alpha.imag() != 0) return {};
  const auto power = power_of(alpha);
  if (!power) return {};
  return inner ? *power * *inner : Scalar(*power, A.ishape());
}

NamedLinop scalar_inverse(const NamedLinop& A) {
  if (A.has_param("weight")) {
    throw NotSupported(who(A) + "inverse: of a number only, not of a parameter");
  }
  const std::complex<double> alpha = A.attr("alpha").as_complex();
  if (alpha == 0.0) throw ValueError(who(A) + "inverse: division by zero");
  return Scalar(1.0 / (A.is_flipped() ? std::conj(alpha) : alpha), A.ishape());
}

void check_scalar(const NamedLinop& A) {
  if (!A.has_param("weight")) {
    A.attr("alpha").as_complex();
    return;
  }
  const Parameter& weight = A.param("weight");
  if (weight.shape().empty() && is_inexact(weight.dtype())) return;
  throw ShapeError(who(A) + "alpha: got " + weight.type().str() +
                   ", expected a floating or complex number without axes. Try Diagonal");
}

}  // namespace

std::optional<std::complex<double>> product_of_numbers(std::complex<double> a,
                                                       std::complex<double> b) {
  const bool is_real = a.imag() == 0 && b.imag() == 0;
  const std::complex<double> product = is_real ? a.real() * b.real() : a * b;
  const bool is_exact = a == 0.0 || b == 0.0 || !is_finite(a) || !is_finite(b);
  return is_exact || std::isnormal(size_of(product)) ? std::optional(product) : std::nullopt;
}

const LinopType& linop_types::scalar() {
  return PALIMPSEST_LINOP_TYPE(.name = "Scalar",
                               .functions = {.fn = scalar_fn,
                                             .adj_fn = scalar_adj_fn,
                                             .normal_fn = scalar_normal_fn,
                                             .split = split_unchanged},
                               .adj_normal_fn = scalar_normal_fn, .normal = scalar_normal,
                               .check = check_scalar, .inverse = scalar_inverse, .one_shape = true);
}

NamedLinop Scalar(const LinopScalar& alpha, Dims dims) {
  Attribute value = alpha.value;
  if (alpha.value.imag() == 0) value = alpha.value.real();
  return make_linop(linop_types::scalar(), NamedShape(dims), {}, {{"alpha", std::move(value)}});
}

NamedLinop Scalar(const Parameter& alpha, Dims dims) {
  return make_linop(linop_types::scalar(), NamedShape(dims), {{"weight", alpha}});
}

}  // namespace palimpsest
