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
/// `where` the dtype of the choices). Never `identity`, which is copy_row_between.
ScalarKernel scalar_kernel(ScalarOp op, DType working);

// By family; null if op is of another one.
ScalarKernel real_arithmetic_kernel(ScalarOp op, DType working);
ScalarKernel comparison_kernel(ScalarOp op, DType working);
ScalarKernel real_function_kernel(ScalarOp op, DType working);
ScalarKernel complex_kernel(ScalarOp op, DType working);
ScalarKernel complex_function_kernel(ScalarOp op, DType working);

/// |z|^2 in double precision whose root is |z|: neither part of the sum was lost. Else |z| takes
/// std::hypot.
inline constexpr double kLeastSafeNorm2 = 1e-290, kMostSafeNorm2 = 1e300;
inline bool is_safe_norm2(double square) {
  return square >= kLeastSafeNorm2 && square <= kMostSafeNorm2;
}

// In all loops an element is read before it is written and never again, so `ivdep` holds although
// a source may be the destination.

/// F: static R call(A).
template <class A, class R, class F>
void unary_loop(const std::byte* const* sources, std::byte* out, index_t n) {
  const auto* a = reinterpret_cast<const A*>(sources[0]);
  auto* r = reinterpret_cast<R*>(out);
#pragma GCC ivdep
  for (index_t i = 0; i < n; ++i) r[i] = F::call(a[i]);
}

/// F: static R call(A, A).
template <class A, class R, class F>
void binary_loop(const std::byte* const* sources, std::byte* out, index_t n) {
  const auto* a = reinterpret_cast<const A*>(sources[0]);
  const auto* b = reinterpret_cast<const A*>(sources[1]);
  auto* r = reinterpret_cast<R*>(out);
#pragma GCC ivdep
  for (index_t i = 0; i < n; ++i) r[i] = F::call(a[i], b[i]);
}

/// F: static R call(A, A, A).
template <class A, class R, class F>
void ternary_loop(const std::byte* const* sources, std::byte* out, index_t n) {
  const auto* a = reinterpret_cast<const A*>(sources[0]);
  const auto* b = reinterpret_cast<const A*>(sources[1]);
  const auto* c = reinterpret_cast<const A*>(sources[2]);
  auto* r = reinterpret_cast<R*>(out);
#pragma GCC ivdep
  for (index_t i = 0; i < n; ++i) r[i] = F::call(a[i], b[i], c[i]);
}

}  // namespace palimpsest
