// SPDX-License-Identifier: Apache-2.0
// Internal: loops over dense arrays, vectorized by the compiler. Included once per instruction set.
#if defined(PALIMPSEST_SCALAR_LOOPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_SCALAR_LOOPS_INL_HPP
#undef PALIMPSEST_SCALAR_LOOPS_INL_HPP
#else
#define PALIMPSEST_SCALAR_LOOPS_INL_HPP
#endif

#include <hwy/highway.h>

#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

// All loops read an element before they write it and never read it again. So `ivdep` holds although
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_SCALAR_LOOPS_INL_HPP
