// SPDX-License-Identifier: Apache-2.0
// Internal: the inner loop of every scalar op.
#pragma once

#include <array>
#include <cstddef>

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
/// Outside it |z| is computed by std::hypot.
inline constexpr double kLeastSafeNorm2 = 1e-290, kMostSafeNorm2 = 1e300;
inline bool is_safe_norm2(double square) {
  return square >= kLeastSafeNorm2 && square <= kMostSafeNorm2;
}

}  // namespace palimpsest
