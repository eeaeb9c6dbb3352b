// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"

namespace PALIMPSEST_API palimpsest {

// clang-format off
// Every scalar function, in the order of ScalarOp: X(name, number of operands, rule for dtypes).
#define PALIMPSEST_FOR_EACH_SCALAR_OP(X)                                                        \
  X(add, 2, number) X(sub, 2, not_bool) X(mul, 2, number) X(div, 2, inexact)                    \
  X(neg, 1, not_bool) X(abs, 1, real_part) X(sign, 1, not_bool) X(reciprocal, 1, inexact)       \
  X(square, 1, power) X(sqrt, 1, inexact) X(pow, 2, power) X(fma, 3, number)                    \
  X(minimum, 2, ordered) X(maximum, 2, ordered) X(floor_div, 2, division)                       \
  X(mod, 2, division) X(round, 1, number) X(clip, 3, ordered)                                   \
  X(eq, 2, equality) X(ne, 2, equality) X(lt, 2, order) X(le, 2, order) X(gt, 2, order)         \
  X(ge, 2, order) X(isnan, 1, equality) X(isinf, 1, equality) X(isfinite, 1, equality)          \
  X(logical_and, 2, logic) X(logical_or, 2, logic) X(logical_xor, 2, logic)                     \
  X(logical_not, 1, logic)                                                                      \
  X(bitwise_and, 2, bits) X(bitwise_or, 2, bits) X(bitwise_xor, 2, bits) X(bitwise_not, 1, bits) \
  X(exp, 1, inexact) X(expm1, 1, inexact) X(log, 1, inexact) X(log1p, 1, inexact)               \
  X(log2, 1, inexact) X(log10, 1, inexact) X(sin, 1, inexact) X(cos, 1, inexact)                \
  X(tan, 1, inexact) X(arcsin, 1, inexact) X(arccos, 1, inexact) X(arctan, 1, inexact)          \
  X(sinh, 1, inexact) X(cosh, 1, inexact) X(tanh, 1, inexact) X(arcsinh, 1, inexact)            \
  X(arccosh, 1, inexact) X(arctanh, 1, inexact) X(arctan2, 2, floating)                         \
  X(hypot, 2, floating) X(sinc, 1, inexact) X(erf, 1, floating) X(sigmoid, 1, inexact)          \
  X(conj, 1, number) X(angle, 1, inexact_real_part) X(abs2, 1, real_power)                      \
  X(make_complex, 2, pair) X(real, 1, real_part) X(imag, 1, real_part)                          \
  X(where, 3, choice) X(identity, 1, number)
// clang-format on

/// A function of up to three scalars, applied element by element. Notes:
///
/// - Integers wrap; their division, remainder by zero and negative powers of zero give 0, other
///   negative powers are truncated. `add`, `mul` and `fma` of bools are `or` and `and`.
/// - `floor_div` and `mod` round towards minus infinity; `round` takes halves to even.
/// - `minimum`, `maximum` and `clip(x, low, high)`, which is minimum(maximum(x, low), high),
///   propagate NaN. `sign` of a complex z is z/|z|, of 0 it is 0.
/// - `sinc` is sin(pi x) / (pi x). `angle` of a negative real is pi. `fma(a, b, c)` is a*b + c
///   with both steps rounded. `where(c, a, b)`; `make_complex(re, im)`; `identity` is the cast.
/// - Complex products are the plain formula: an infinite operand gives NaN. Quotients are the plain
///   formula too, computed without overflow or underflow on the way; by 0 they are NaN.
/// - Comparisons of int64 with uint64 are exact.
enum class ScalarOp : std::uint8_t {
#define PALIMPSEST_ENUMERATOR(name, arity, rule) name,
  PALIMPSEST_FOR_EACH_SCALAR_OP(PALIMPSEST_ENUMERATOR)
#undef PALIMPSEST_ENUMERATOR
};
inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::identity) + 1;
/// Largest number of operands.
inline constexpr int kMaxArity = 3;

/// Number of operands.
int arity(ScalarOp op);
/// The name as printed: `logical_and`.
std::string_view name_of(ScalarOp op);

/// The effect of an op on dtypes: each operand is first converted to `sources[i]`; the result has
/// dtype `result`.
struct ScalarOpTypes {
  DType sources[kMaxArity];
  DType result;
};

/// The types in which op works for operands of these dtypes: the operands' promotion (promote());
/// float64 if the function needs a floating type and that is none. Comparisons and logic give bool;
/// abs, abs2, angle, real, imag the real type; make_complex the complex type. For `identity` the
/// operand's own dtype.
/// Errors   DTypeError naming the op: complex where an order is needed (lt, minimum, clip,
///          floor_div, mod, arctan2, hypot, erf), sub, neg, sign of bools, bitwise ops of inexact
///          numbers
ScalarOpTypes scalar_op_types(ScalarOp op, std::span<const DType> operands);
/// scalar_op_types().result.
DType result_dtype(ScalarOp op, std::span<const DType> operands);

}  // namespace palimpsest
