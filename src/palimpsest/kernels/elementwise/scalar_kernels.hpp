// SPDX-License-Identifier: Apache-2.0
// Internal: the inner loop of every scalar op.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>

#include "palimpsest/kernels/elementwise/scalar_op.hpp"

namespace palimpsest {

/// out[i] = op(sources[0][i], ...) for n dense elements. A source may be `out` itself.
using ScalarKernel = void (*)(const std::byte* const* sources, std::byte* out, index_t n);

/// The loop of an op whose operands have the dtype `working`, as scalar_op_types gives it (for
/// `where` the dtype of the choices). `identity` has no loop here: copy_row_between does it.
ScalarKernel scalar_kernel(ScalarOp op, DType working);

// Loops by family; null if op belongs to another one.
ScalarKernel real_arithmetic_kernel(ScalarOp op, DType working);
ScalarKernel comparison_kernel(ScalarOp op, DType working);
ScalarKernel real_function_kernel(ScalarOp op, DType working);
ScalarKernel complex_kernel(ScalarOp op, DType working);
ScalarKernel complex_function_kernel(ScalarOp op, DType working);

/// The range of |z|^2 in double precision in which its root is |z|: no part of the sum was lost.
/// Outside it |z| is computed by far_magnitude, and quotients by far_quotient.
inline constexpr double kLeastSafeNorm2 = 1e-290, kMostSafeNorm2 = 1e300;
inline bool is_safe_norm2(double square) {
  return square >= kLeastSafeNorm2 && square <= kMostSafeNorm2;
}

/// |z| from parts scaled by a power of two, so that nothing but the result can be out of range.
inline double far_magnitude(double re, double im) {
  if (std::isinf(re) || std::isinf(im)) return std::numeric_limits<double>::infinity();
  const double factor = std::fmax(std::abs(re), std::abs(im)) > 1 ? 0x1p-600 : 0x1p600;
  re *= factor;
  im *= factor;
  return std::sqrt(re * re + im * im) * (1 / factor);
}

/// a / b, computed by the plain formula from numbers scaled by powers of two, so that nothing but
/// the result can be out of range; by Smith's formula if a or b is infinite. NaN if b is 0.
std::complex<double> far_quotient(std::complex<double> a, std::complex<double> b);
/// a / b by the plain formula: a conj(b) / |b|^2; by far_quotient if part of these was lost.
inline std::complex<double> safe_quotient(std::complex<double> a, std::complex<double> b) {
  const double norm2 = b.real() * b.real() + b.imag() * b.imag();
  const double re = a.real() * b.real() + a.imag() * b.imag();
  const double im = a.imag() * b.real() - a.real() * b.imag();
  const double size = std::abs(re) + std::abs(im);
  const bool is_safe = is_safe_norm2(norm2) && size <= std::numeric_limits<double>::max() &&
                       (size >= kLeastSafeNorm2 || (a.real() == 0 && a.imag() == 0));
  return is_safe ? std::complex<double>(re / norm2, im / norm2) : far_quotient(a, b);
}

}  // namespace palimpsest
