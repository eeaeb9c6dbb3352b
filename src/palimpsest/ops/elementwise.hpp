// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <concepts>

#include "palimpsest/graph/variable.hpp"
#include "palimpsest/kernels/scalar_op.hpp"

namespace palimpsest {

/// A number next to a Variable is weak: it takes the other operand's dtype if its kind fits
/// (`x_f32 * 2.0` is float32, `x_i32 * 2.0` float64, `x_f32 * 1i` complex64).
struct WeakNumber {
  template <std::integral T>
  WeakNumber(T v) : value(static_cast<double>(v)), integer(static_cast<index_t>(v)), kind(0) {}
  template <std::floating_point T>
  WeakNumber(T v) : value(static_cast<double>(v)), kind(1) {}
  template <std::floating_point T>
  WeakNumber(std::complex<T> v) : value(v), kind(2) {}
  /// The 0-d constant next to an operand of this dtype.
  Variable as_variable(DType other) const;

  std::complex<double> value;
  index_t integer = 0;
  int kind = 0;  // 0 integer, 1 real, 2 complex
};

namespace ops {

/// Applies one scalar operation elementwise. Dimensions known to be 1 broadcast.
/// Aliases  view_map {}, destroy_map {}; an in-place variant may overwrite any one input of the
///          output's extents and item size
/// Errors   ShapeError: extents that differ and are not known to be 1; DTypeError: no such dtype
/// Cost     one pass
Variable elementwise(ScalarOp op, std::span<const Variable> inputs);
Variable elementwise(ScalarOp op, std::initializer_list<Variable> inputs);

Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);
Variable neg(const Variable& x);
Variable abs(const Variable& x);
/// |x|^2, real.
Variable abs2(const Variable& x);
Variable sqrt(const Variable& x);
Variable reciprocal(const Variable& x);
Variable square(const Variable& x);
Variable exp(const Variable& x);
Variable conj(const Variable& x);
/// Real and imaginary part; of a complex array a view.
Variable real(const Variable& x);
Variable imag(const Variable& x);
Variable make_complex(const Variable& re, const Variable& im);
/// condition ? a : b
Variable where(const Variable& condition, const Variable& a, const Variable& b);
Variable minimum(const Variable& a, const Variable& b);
Variable maximum(const Variable& a, const Variable& b);
/// Converted; complex to real is a DTypeError.
Variable astype(const Variable& x, DType dtype);

}  // namespace ops

Variable operator+(const Variable& a, const Variable& b);
Variable operator-(const Variable& a, const Variable& b);
Variable operator*(const Variable& a, const Variable& b);
Variable operator/(const Variable& a, const Variable& b);
Variable operator-(const Variable& x);
Variable operator+(const Variable& a, WeakNumber b);
Variable operator-(const Variable& a, WeakNumber b);
Variable operator*(const Variable& a, WeakNumber b);
Variable operator/(const Variable& a, WeakNumber b);
Variable operator+(WeakNumber a, const Variable& b);
Variable operator-(WeakNumber a, const Variable& b);
Variable operator*(WeakNumber a, const Variable& b);
Variable operator/(WeakNumber a, const Variable& b);

}  // namespace palimpsest
