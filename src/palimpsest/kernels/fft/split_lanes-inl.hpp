// SPDX-License-Identifier: Apache-2.0
// Internal: rows of scratch of split transforms, and exchanges of their lanes. Compiled once per
// instruction set.
//
// A row has two vectors: real parts, imaginary parts.
#if defined(PALIMPSEST_SPLIT_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_SPLIT_LANES_INL
#undef PALIMPSEST_SPLIT_LANES_INL
#else
#define PALIMPSEST_SPLIT_LANES_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <cstdint>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/kernels/fft/split_radices-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Lanes = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Lanes<T>>;
template <class T>
using Numbers = Split<Vector<T>>;
template <class T>
constexpr index_t kWidth = hn::MaxLanes(Lanes<T>());
template <class T>
constexpr index_t kRow = 2 * kWidth<T>;  // numbers in a row of scratch

template <class T>
HWY_INLINE Numbers<T> load_scratch(const T* row) {
  const Lanes<T> d;
  return {hn::Load(d, row), hn::Load(d, row + kWidth<T>)};
}
template <class T>
HWY_INLINE void store_scratch(Numbers<T> z, T* row) {
  const Lanes<T> d;
  hn::Store(z.re, d, row);
  hn::Store(z.im, d, row + kWidth<T>);
}

// Real parts, and imaginary parts, of the complex numbers in a and b. Block by block: lanes of a,
// then lanes of b.
template <class T>
HWY_INLINE Numbers<T> apart(Vector<T> a, Vector<T> b) {
#if HWY_TARGET == HWY_SCALAR
  return {a, b};
#else
  const Lanes<T> d;
  if constexpr (sizeof(T) == 8) {
    return {hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)};
  } else {
#if HWY_TARGET <= HWY_AVX3
    return {Vector<T>{_mm512_shuffle_ps(a.raw, b.raw, _MM_SHUFFLE(2, 0, 2, 0))},
            Vector<T>{_mm512_shuffle_ps(a.raw, b.raw, _MM_SHUFFLE(3, 1, 3, 1))}};
#elif HWY_TARGET == HWY_AVX2
    return {Vector<T>{_mm256_shuffle_ps(a.raw, b.raw, _MM_SHUFFLE(2, 0, 2, 0))},
            Vector<T>{_mm256_shuffle_ps(a.raw, b.raw, _MM_SHUFFLE(3, 1, 3, 1))}};
#else
    return {hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a)};
#endif
  }
#endif
}
// The inverse: a, then b.
template <class T>
HWY_INLINE std::array<Vector<T>, 2> together(Numbers<T> z) {
#if HWY_TARGET == HWY_SCALAR
  return {z.re, z.im};
#else
  const Lanes<T> d;
  return {hn::InterleaveLower(d, z.re, z.im), hn::InterleaveUpper(d, z.re, z.im)};
#endif
}

template <bool kExchanges, class T>
HWY_INLINE void exchange(Numbers<T>& z) {
  if constexpr (kExchanges) {
    const Vector<T> re = z.re;
    z.re = z.im;
    z.im = re;
  }
}

#if HWY_TARGET != HWY_SCALAR
#if HWY_TARGET <= HWY_AVX3
// Lanes of a and, from number kWidth on, of b.
template <int... kLanes>
HWY_INLINE Vector<float> select(Vector<float> a, Vector<float> b) {
  alignas(64) static constexpr std::int32_t kTable[] = {kLanes...};
  return Vector<float>{_mm512_permutex2var_ps(a.raw, _mm512_load_si512(kTable), b.raw)};
}
template <int... kLanes>
HWY_INLINE Vector<double> select(Vector<double> a, Vector<double> b) {
  alignas(64) static constexpr std::int64_t kTable[] = {kLanes...};
  return Vector<double>{_mm512_permutex2var_pd(a.raw, _mm512_load_si512(kTable), b.raw)};
}
#endif

// Transposes the squares of four lanes of four vectors.
template <class T>
HWY_INLINE void transpose(Vector<T> (&r)[4]) {
  const Lanes<T> d;
  const Vector<T> a = hn::InterleaveLower(d, r[0], r[1]), b = hn::InterleaveUpper(d, r[0], r[1]);
  const Vector<T> c = hn::InterleaveLower(d, r[2], r[3]), e = hn::InterleaveUpper(d, r[2], r[3]);
  if constexpr (sizeof(T) == 4) {
    const hn::RepartitionToWide<Lanes<T>> pairs;
    const auto wide = [&](Vector<T> v) HWY_ATTR { return hn::BitCast(pairs, v); };
    r[0] = hn::BitCast(d, hn::InterleaveLower(pairs, wide(a), wide(c)));
    r[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, wide(a), wide(c)));
    r[2] = hn::BitCast(d, hn::InterleaveLower(pairs, wide(b), wide(e)));
    r[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, wide(b), wide(e)));
  } else {
#if HWY_TARGET <= HWY_AVX3
    r[0] = select<0, 1, 8, 9, 4, 5, 12, 13>(a, c);
    r[1] = select<0, 1, 8, 9, 4, 5, 12, 13>(b, e);
    r[2] = select<2, 3, 10, 11, 6, 7, 14, 15>(a, c);
    r[3] = select<2, 3, 10, 11, 6, 7, 14, 15>(b, e);
#elif HWY_TARGET == HWY_AVX2
    r[0] = hn::ConcatLowerLower(d, c, a);
    r[1] = hn::ConcatLowerLower(d, e, b);
    r[2] = hn::ConcatUpperUpper(d, c, a);
    r[3] = hn::ConcatUpperUpper(d, e, b);
#endif
  }
}

// Four numbers, repeated in all lanes.
template <class T>
HWY_INLINE Vector<T> load_four(const T* p) {
  const Lanes<T> d;
  if constexpr (sizeof(T) == 4) {
    return hn::LoadDup128(d, p);
  } else {
#if HWY_TARGET <= HWY_AVX3
    return Vector<T>{_mm512_broadcast_f64x4(_mm256_loadu_pd(p))};
#else
    return hn::LoadU(d, p);
#endif
  }
}
#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_SPLIT_LANES_INL
