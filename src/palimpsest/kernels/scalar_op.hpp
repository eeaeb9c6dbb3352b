// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

// Every scalar function: X(name, number of operands). The order is the order of ScalarOp.
#define PALIMPSEST_FOR_EACH_SCALAR_OP(X)                                                       \
  X(add, 2)                                                                                    \
  X(sub, 2) X(mul, 2) X(div, 2) X(neg, 1) X(abs, 1) X(sign, 1) X(reciprocal, 1) X(square, 1)   \
      X(sqrt, 1) X(pow, 2) X(fma, 3) X(minimum, 2) X(maximum, 2) X(floor_div, 2) X(mod, 2)     \
          X(round, 1) X(eq, 2) X(ne, 2) X(lt, 2) X(le, 2) X(gt, 2) X(ge, 2) X(isnan, 1)        \
              X(isinf, 1) X(isfinite, 1) X(logical_and, 2) X(logical_or, 2) X(logical_xor, 2)  \
                  X(logical_not, 1) X(bitwise_and, 2) X(bitwise_or, 2) X(bitwise_xor, 2)       \
                      X(bitwise_not, 1) X(exp, 1) X(expm1, 1) X(log, 1) X(log1p, 1) X(log2, 1) \
                          X(log10, 1) X(sin, 1) X(cos, 1) X(tan, 1) X(arcsin, 1) X(arccos, 1)  \
                              X(arctan, 1) X(sinh, 1) X(cosh, 1) X(tanh, 1) X(arctan2, 2)      \
                                  X(hypot, 2) X(sinc, 1) X(erf, 1) X(sigmoid, 1) X(conj, 1)    \
                                      X(angle, 1) X(abs2, 1) X(make_complex, 2) X(real, 1)     \
                                          X(imag, 1) X(where, 3) X(identity, 1)

/// A function of up to three scalars, applied element by element. What deserves saying:
///
/// - Integers wrap; their division, remainder by zero and negative powers of zero give 0, and other
///   negative powers are cut towards zero. `add`, `mul` and `fma` of bools are `or` and `and`.
/// - `floor_div` and `mod` round towards minus infinity; `round` takes halves to even.
/// - `minimum` and `maximum` pass on NaN. `sign` of a complex z is z/|z|, of 0 it is 0.
/// - `sinc` is sin(pi x) / (pi x). `angle` of a negative real is pi. `fma(a, b, c)` is a*b + c,
/// each
///   step rounded. `where(c, a, b)`; `make_complex(re, im)`; `identity` is the cast.
/// - Complex products and quotients are the plain formulas: an infinite operand gives NaN.
enum class ScalarOp : std::uint8_t {
#define PALIMPSEST_ENUMERATOR(name, arity) name,
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

/// What an op does to dtypes: each operand is converted to `sources[i]` first, the result is
/// `result`.
struct ScalarOpTypes {
  DType sources[kMaxArity];
  DType result;
};

/// The types in which op works for operands of these dtypes: the operands' promotion (promote());
/// where that is no floating type and the function needs one, float64. Comparisons and logic give
/// bool; abs, abs2, angle, real, imag the real type; make_complex the complex type. For `identity`
/// the operand's own dtype.
/// Errors   DTypeError naming the op: complex where an order is needed (lt, minimum, floor_div,
///          mod, arctan2, hypot, erf), sub, neg, sign of bools, bitwise ops of inexact numbers
ScalarOpTypes scalar_op_types(ScalarOp op, std::span<const DType> operands);
/// scalar_op_types().result.
DType result_dtype(ScalarOp op, std::span<const DType> operands);

}  // namespace palimpsest
