// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/transpose_wide.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace palimpsest {

#if defined(__x86_64__)
namespace {

#define PALIMPSEST_AVX2 __attribute__((target("avx2")))

PALIMPSEST_AVX2 inline __m128d get(const std::byte* p) {
  return _mm_loadu_pd(reinterpret_cast<const double*>(p));
}
PALIMPSEST_AVX2 inline void put(std::byte* p, __m256d v) {
  _mm256_storeu_pd(reinterpret_cast<double*>(p), v);
}
// 16 bytes of two rows.
PALIMPSEST_AVX2 inline __m256d halves(const std::byte* low, const std::byte* high) {
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(get(low)), get(high), 1);
}

// Four columns of 8 rows.
PALIMPSEST_AVX2 inline void columns_of_4(const std::byte* x, index_t x_row, std::byte* y,
                                         index_t y_row) {
  __m256 r[4];
  for (index_t k = 0; k < 4; ++k) {
    r[k] = _mm256_castpd_ps(halves(x + k * x_row, x + (k + 4) * x_row));
  }
  const __m256 low = _mm256_unpacklo_ps(r[0], r[1]), high = _mm256_unpackhi_ps(r[0], r[1]);
  const __m256 low_2 = _mm256_unpacklo_ps(r[2], r[3]), high_2 = _mm256_unpackhi_ps(r[2], r[3]);
  put(y, _mm256_castps_pd(_mm256_shuffle_ps(low, low_2, 0x44)));
  put(y + y_row, _mm256_castps_pd(_mm256_shuffle_ps(low, low_2, 0xee)));
  put(y + 2 * y_row, _mm256_castps_pd(_mm256_shuffle_ps(high, high_2, 0x44)));
  put(y + 3 * y_row, _mm256_castps_pd(_mm256_shuffle_ps(high, high_2, 0xee)));
}

PALIMPSEST_AVX2 index_t squares_of_4(const std::byte* x, index_t x_row, index_t n, std::byte* y,
                                     index_t y_row) {
  index_t j = 0;
  for (; j + 8 <= n; j += 8) {
    columns_of_4(x + j * 4, x_row, y + j * y_row, y_row);
    columns_of_4(x + j * 4 + 16, x_row, y + (j + 4) * y_row, y_row);
  }
  return j;
}

PALIMPSEST_AVX2 index_t squares_of_8(const std::byte* x, index_t x_row, index_t n, std::byte* y,
                                     index_t y_row) {
  index_t j = 0;
  for (; j + 4 <= n; j += 4) {
    for (index_t half = 0; half < 2; ++half) {
      const std::byte* from = x + j * 8 + half * 16;
      const __m256d even = halves(from, from + 2 * x_row);
      const __m256d odd = halves(from + x_row, from + 3 * x_row);
      std::byte* to = y + (j + 2 * half) * y_row;
      put(to, _mm256_unpacklo_pd(even, odd));
      put(to + y_row, _mm256_unpackhi_pd(even, odd));
    }
  }
  return j;
}

PALIMPSEST_AVX2 index_t squares_of_16(const std::byte* x, index_t x_row, index_t n, std::byte* y,
                                      index_t y_row) {
  for (index_t j = 0; j < n; ++j) put(y + j * y_row, halves(x + j * 16, x + x_row + j * 16));
  return n;
}

}  // namespace

ExchangeSquares wide_squares(std::size_t item) {
  static const bool has_them = __builtin_cpu_supports("avx2");
  if (!has_them) return nullptr;
  if (item == 4) return squares_of_4;
  if (item == 8) return squares_of_8;
  return item == 16 ? squares_of_16 : nullptr;
}
#else
ExchangeSquares wide_squares(std::size_t) { return nullptr; }
#endif

}  // namespace palimpsest
