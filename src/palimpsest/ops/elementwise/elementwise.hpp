// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"
#include "palimpsest/kernels/elementwise/scalar_op.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// Applies one scalar operation elementwise. Dimensions known to be 1 broadcast. See ScalarOp and
/// scalar_op_types for the effect of the operations on numbers and dtypes.
/// Aliases  view_map {}, destroy_map {}; an in-place variant may overwrite any one input of the
///          output's extents and item size
/// Errors   ShapeError: extents that differ and are not known to be 1; DTypeError: no such dtype
/// Cost     one pass
Variable elementwise(ScalarOp op, std::span<const Variable> inputs);
Variable elementwise(ScalarOp op, std::initializer_list<Variable> inputs);
/// Numbers among the operands are weak next to the variables; numbers alone are values.
Variable elementwise_of(ScalarOp op, std::initializer_list<Operand> operands);

// -- arithmetic --------------------------------------------------------------------------------

Variable add(const Operand& a, const Operand& b);
Variable sub(const Operand& a, const Operand& b);
Variable mul(const Operand& a, const Operand& b);
/// True division: of integers a float64.
Variable div(const Operand& a, const Operand& b);
/// Rounded towards minus infinity; integers by zero give 0.
Variable floor_div(const Operand& a, const Operand& b);
/// a - b floor_div(a, b): of the sign of b; integers by zero give 0.
Variable mod(const Operand& a, const Operand& b);
Variable neg(const Variable& x);
Variable abs(const Variable& x);
/// -1, 0 or 1; z/|z| of a complex z, its direction where it is infinite, 0 of 0.
Variable sign(const Variable& x);
Variable reciprocal(const Variable& x);
Variable square(const Variable& x);
Variable sqrt(const Variable& x);
Variable pow(const Operand& a, const Operand& b);
/// a b + c, both steps rounded.
Variable fma(const Operand& a, const Operand& b, const Operand& c);
/// The smaller, or the larger, of two numbers; NaN if one is NaN.
Variable minimum(const Operand& a, const Operand& b);
Variable maximum(const Operand& a, const Operand& b);
/// minimum(maximum(x, low), high).
Variable clip(const Operand& x, const Operand& low, const Operand& high);
/// The nearest integer, of halves the even one.
Variable round(const Variable& x);

// -- comparisons, logic, bits ------------------------------------------------------------------

Variable eq(const Operand& a, const Operand& b);
Variable ne(const Operand& a, const Operand& b);
Variable lt(const Operand& a, const Operand& b);
Variable le(const Operand& a, const Operand& b);
Variable gt(const Operand& a, const Operand& b);
Variable ge(const Operand& a, const Operand& b);
Variable isnan(const Variable& x);
Variable isinf(const Variable& x);
Variable isfinite(const Variable& x);
/// Logical operations on any dtype: every number but 0 is true.
Variable logical_and(const Operand& a, const Operand& b);
Variable logical_or(const Operand& a, const Operand& b);
Variable logical_xor(const Operand& a, const Operand& b);
Variable logical_not(const Variable& x);
/// Operations on the bits of bools and integers.
Variable bitwise_and(const Operand& a, const Operand& b);
Variable bitwise_or(const Operand& a, const Operand& b);
Variable bitwise_xor(const Operand& a, const Operand& b);
Variable bitwise_not(const Variable& x);
/// Elements of a where the condition holds, of b elsewhere.
Variable where(const Operand& condition, const Operand& a, const Operand& b);

// -- transcendental functions; complex too, on the principal branch ----------------------------

Variable exp(const Variable& x);
/// exp(x) - 1, also where x is small.
Variable expm1(const Variable& x);
Variable log(const Variable& x);
/// log(1 + x), also where x is small.
Variable log1p(const Variable& x);
Variable log2(const Variable& x);
Variable log10(const Variable& x);
Variable sin(const Variable& x);
Variable cos(const Variable& x);
Variable tan(const Variable& x);
Variable arcsin(const Variable& x);
Variable arccos(const Variable& x);
Variable arctan(const Variable& x);
Variable sinh(const Variable& x);
Variable cosh(const Variable& x);
Variable tanh(const Variable& x);
Variable arcsinh(const Variable& x);
Variable arccosh(const Variable& x);
Variable arctanh(const Variable& x);
/// The angle of the point (x, y), real.
Variable atan2(const Operand& y, const Operand& x);
/// sqrt(a^2 + b^2) without overflow, real.
Variable hypot(const Operand& a, const Operand& b);
/// sin(pi x) / (pi x), 1 at 0.
Variable sinc(const Variable& x);
/// The error function of real numbers.
Variable erf(const Variable& x);
/// The logistic function 1 / (1 + exp(-x)).
Variable sigmoid(const Variable& x);

// -- complex numbers ---------------------------------------------------------------------------

Variable conj(const Variable& x);
/// The angle of a number in (-pi, pi], real.
Variable angle(const Variable& x);
/// The squared magnitude |x|^2, real.
Variable abs2(const Variable& x);
/// Real and imaginary part; of a complex array a view.
Variable real(const Variable& x);
Variable imag(const Variable& x);
/// The complex number re + i im.
Variable complex(const Operand& re, const Operand& im);
/// The complex number re + i im, as complex().
Variable make_complex(const Variable& re, const Variable& im);
/// Complex (..) as real (.., 2), and back: views (back: where the last axis is dense).
/// Errors   DTypeError; view_as_complex also ShapeError: the last extent is not 2
Variable view_as_real(const Variable& x);
Variable view_as_complex(const Variable& x);

// -- conversion --------------------------------------------------------------------------------

/// Converted; complex to real is a DTypeError. Casts out of range wrap; NaN and infinity become 0.
Variable astype(const Variable& x, DType dtype);
Variable cast_like(const Variable& x, const Variable& like);

}  // namespace ops

// Operators take variables, tensors (which become constants) and numbers (which are weak).
Variable operator-(const Variable& x);
/// Operators on the bits of bools and integers.
Variable operator~(const Variable& x);
#define PALIMPSEST_OPERATOR(symbol)                               \
  Variable operator symbol(const Variable& a, const Variable& b); \
  Variable operator symbol(const Variable& a, WeakNumber b);      \
  Variable operator symbol(WeakNumber a, const Variable& b);
PALIMPSEST_OPERATOR(+)
PALIMPSEST_OPERATOR(-)
PALIMPSEST_OPERATOR(*)
PALIMPSEST_OPERATOR(/)
PALIMPSEST_OPERATOR(%)
PALIMPSEST_OPERATOR(<)
PALIMPSEST_OPERATOR(<=)
PALIMPSEST_OPERATOR(>)
PALIMPSEST_OPERATOR(>=)
PALIMPSEST_OPERATOR(&)
PALIMPSEST_OPERATOR(|)
PALIMPSEST_OPERATOR(^)
#undef PALIMPSEST_OPERATOR

/// `v += w` rebinds the handle v to v + w; graphs that use the old value keep it.
Variable& operator+=(Variable& v, const Operand& w);
Variable& operator-=(Variable& v, const Operand& w);
Variable& operator*=(Variable& v, const Operand& w);
Variable& operator/=(Variable& v, const Operand& w);

}  // namespace palimpsest
