// SPDX-License-Identifier: Apache-2.0
// Internal to transpose_lines.cpp: rows and columns exchanged in registers of 32 bytes. The
// functions are compiled for AVX2, independent of the rest of the library. They are not called on a
// processor without it.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "palimpsest/base/dtype.hpp"

#define PALIMPSEST_AVX2 __attribute__((target("avx2"), always_inline)) inline

namespace palimpsest::avx2 {

inline constexpr index_t kRegister = 32;

PALIMPSEST_AVX2 __m256d get(const std::byte* p) {
  return _mm256_loadu_pd(reinterpret_cast<const double*>(p));
}
// 16 bytes of two rows.
PALIMPSEST_AVX2 __m256d halves(const std::byte* low, const std::byte* high) {
  const __m128d a = _mm_loadu_pd(reinterpret_cast<const double*>(low));
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(a),
                              _mm_loadu_pd(reinterpret_cast<const double*>(high)), 1);
}
template <bool kStreamed>
PALIMPSEST_AVX2 void put_line(std::byte* line, __m256d low, __m256d high) {
  auto* const to = reinterpret_cast<double*>(line);
  if constexpr (kStreamed) {
    _mm256_stream_pd(to, low);
    _mm256_stream_pd(to + 4, high);
  } else {
    _mm256_storeu_pd(to, low);
    _mm256_storeu_pd(to + 4, high);
  }
}

// Addresses of rows. EvenRows: at a constant distance. FewRows: at most 8 rows; an index past the
// last one gives the last.
struct EvenRows {
  const std::byte* x;
  index_t row;
  PALIMPSEST_AVX2 const std::byte* operator()(index_t k) const { return x + k * row; }
};
struct FewRows {
  const std::byte* x;
  std::array<index_t, 8> offsets;
  PALIMPSEST_AVX2 FewRows(const std::byte* first, index_t row, index_t rows) : x(first) {
    for (index_t k = 0; k < 8; ++k) {
      offsets[static_cast<std::size_t>(k)] = std::min(k, rows - 1) * row;
    }
  }
  PALIMPSEST_AVX2 const std::byte* operator()(index_t k) const {
    return x + offsets[static_cast<std::size_t>(k)];
  }
};

// Columns of 8 rows of 4-byte elements, of 4 of 8-byte ones, of 2 of 16-byte ones: a register each.
template <index_t kItem>
struct Columns;

template <>
struct Columns<4> {
  static constexpr index_t kCount = 4;
  __m256d column[kCount];
  template <class Rows>
  PALIMPSEST_AVX2 explicit Columns(const Rows& row) {
    __m256 r[4];
    for (index_t k = 0; k < 4; ++k) r[k] = _mm256_castpd_ps(halves(row(k), row(k + 4)));
    const __m256 low = _mm256_unpacklo_ps(r[0], r[1]), high = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 low_2 = _mm256_unpacklo_ps(r[2], r[3]), high_2 = _mm256_unpackhi_ps(r[2], r[3]);
    column[0] = _mm256_castps_pd(_mm256_shuffle_ps(low, low_2, 0x44));
    column[1] = _mm256_castps_pd(_mm256_shuffle_ps(low, low_2, 0xee));
    column[2] = _mm256_castps_pd(_mm256_shuffle_ps(high, high_2, 0x44));
    column[3] = _mm256_castps_pd(_mm256_shuffle_ps(high, high_2, 0xee));
  }
};

template <>
struct Columns<8> {
  static constexpr index_t kCount = 4;
  __m256d column[kCount];
  template <class Rows>
  PALIMPSEST_AVX2 explicit Columns(const Rows& row) {
    const __m256d a = get(row(0)), b = get(row(1)), c = get(row(2)), d = get(row(3));
    const __m256d even = _mm256_unpacklo_pd(a, b), odd = _mm256_unpackhi_pd(a, b);
    const __m256d even_2 = _mm256_unpacklo_pd(c, d), odd_2 = _mm256_unpackhi_pd(c, d);
    column[0] = _mm256_permute2f128_pd(even, even_2, 0x20);
    column[1] = _mm256_permute2f128_pd(odd, odd_2, 0x20);
    column[2] = _mm256_permute2f128_pd(even, even_2, 0x31);
    column[3] = _mm256_permute2f128_pd(odd, odd_2, 0x31);
  }
};

template <>
struct Columns<16> {
  static constexpr index_t kCount = 2;
  __m256d column[kCount];
  template <class Rows>
  PALIMPSEST_AVX2 explicit Columns(const Rows& row) {
    const __m256d a = get(row(0)), b = get(row(1));
    column[0] = _mm256_permute2f128_pd(a, b, 0x20);
    column[1] = _mm256_permute2f128_pd(a, b, 0x31);
  }
};

// Asks for a line. Where rows are so far apart that they fall into one set of the first cache,
// which does not hold all of a square, it is to stay in the second.
PALIMPSEST_AVX2 void ask(const std::byte* line, bool collides) {
  if (collides) {
    __builtin_prefetch(line, 0, 2);
  } else {
    __builtin_prefetch(line);
  }
}

// The word of kCount registers that each word of the result comes from. Rows of kCount elements,
// one after the other, become columns; with kToRows columns become such rows.
template <index_t kItem, int kCount, bool kToRows>
struct Weave {
  static constexpr int kWords = kRegister / 4, kElement = kItem / 4;

  static constexpr int source(int word) {
    const int place = word / kElement, rest = word % kElement, columns = kWords / kElement;
    const int from = kToRows ? place % kCount * columns + place / kCount
                             : place % columns * kCount + place / columns;
    return from * kElement + rest;
  }
  static constexpr auto kLanes = [] {
    std::array<std::int32_t, kCount * kWords> lanes{};
    for (int k = 0; k < kCount * kWords; ++k) {
      lanes[static_cast<std::size_t>(k)] = source(k) % kWords;
    }
    return lanes;
  }();
  // Words of register `to` that come from register `from`.
  static constexpr int mask(int to, int from) {
    int bits = 0;
    for (int k = 0; k < kWords; ++k) bits |= (source(to * kWords + k) / kWords == from) << k;
    return bits;
  }

  template <int kTo>
  PALIMPSEST_AVX2 static __m256d get(const __m256 (&x)[kCount]) {
    const __m256i lanes =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kLanes.data() + kTo * kWords));
    __m256 y = _mm256_permutevar8x32_ps(x[0], lanes);
    y = _mm256_blend_ps(y, _mm256_permutevar8x32_ps(x[1], lanes), mask(kTo, 1));
    if constexpr (kCount == 3) {
      y = _mm256_blend_ps(y, _mm256_permutevar8x32_ps(x[2], lanes), mask(kTo, 2));
    }
    return _mm256_castps_pd(y);
  }
};
// True if this many rows, or columns, are woven.
template <index_t kItem>
constexpr bool is_woven(index_t count) {
  return kItem < 16 && (count == 2 || count == 3);
}

}  // namespace palimpsest::avx2
