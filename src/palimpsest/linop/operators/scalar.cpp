// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/scalar.hpp"

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

// Neighbouring numbers become one, in double precision.
Variable times(const Variable& x, std::complex<double> alpha) {
  if (const auto beta = number_in_front(x)) {
    const Variable& before = x.owner().input(0);
    if (is_complex(before.dtype()) == is_complex(x.dtype())) return times(before, alpha * *beta);
  }
  return alpha.imag() == 0 ? x * alpha.real() : x * alpha;
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
  return times(x, std::norm(A.attr("alpha").as_complex()));
}

// |alpha|^2 of a number; a parameter has the generic normal operator, with scalar_normal_fn.
NamedLinop scalar_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (A.has_param("weight")) return {};
  const std::complex<double> alpha = A.attr("alpha").as_complex();
  // Only real numbers commute with operators that are linear over the reals.
  if (inner && is_real_linear(*inner) && alpha.imag() != 0) return {};
  const double power = std::norm(alpha);
  return inner ? power * *inner : Scalar(power, A.ishape());
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
