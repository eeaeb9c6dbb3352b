// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/transpose_lines.hpp"

#include <algorithm>

#include "palimpsest/base/stream_store.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace palimpsest {

#if defined(__x86_64__)
namespace {

#define PALIMPSEST_AVX2 __attribute__((target("avx2"), always_inline)) inline

constexpr index_t kRegister = 32;

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

// Columns of 8 rows of 4-byte elements, of 4 of 8-byte ones, of 2 of 16-byte ones.
template <index_t kItem>
struct Columns;

template <>
struct Columns<4> {
  static constexpr index_t kCount = 4;
  __m256d column[kCount];
  PALIMPSEST_AVX2 Columns(const std::byte* x, index_t row) {
    __m256 r[4];
    for (index_t k = 0; k < 4; ++k) r[k] = _mm256_castpd_ps(halves(x + k * row, x + (k + 4) * row));
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
  PALIMPSEST_AVX2 Columns(const std::byte* x, index_t row) {
    const __m256d a = get(x), b = get(x + row), c = get(x + 2 * row), d = get(x + 3 * row);
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
  PALIMPSEST_AVX2 Columns(const std::byte* x, index_t row) {
    const __m256d a = get(x), b = get(x + row);
    column[0] = _mm256_permute2f128_pd(a, b, 0x20);
    column[1] = _mm256_permute2f128_pd(a, b, 0x31);
  }
};

// Asks for a line. Where rows are so far apart that they fall into one set of the first cache, which
// does not hold all of a square, it is to stay in the second.
constexpr index_t kSet = 2048;
PALIMPSEST_AVX2 void ask(const std::byte* line, bool collides) {
  if (collides) {
    __builtin_prefetch(line, 0, 2);
  } else {
    __builtin_prefetch(line);
  }
}

// Up to a line of each of so many rows that their elements fill lines of y, and asks for those that are
// `ahead` bytes further. Half of the rows at a time: all of them may be more than a set has room for.
// `columns` is a multiple of C::kCount.
template <index_t kItem, bool kStreamed>
PALIMPSEST_AVX2 void exchange_lines(const std::byte* x, index_t x_row, std::byte* y, index_t y_row,
                                    index_t columns, index_t ahead, bool collides) {
  using C = Columns<kItem>;
  constexpr index_t kSide = kCacheLine / kItem;
  for (index_t k = 0; k < kSide; ++k) ask(x + k * x_row + ahead, collides);
  __m256d first[kSide];
  for (index_t j = 0; j < columns; j += C::kCount) {
    const C some(x + j * kItem, x_row);
    for (index_t k = 0; k < C::kCount; ++k) first[j + k] = some.column[k];
  }
  x += kSide / 2 * x_row;
  for (index_t j = 0; j < columns; j += C::kCount) {
    const C some(x + j * kItem, x_row);
    for (index_t k = 0; k < C::kCount; ++k, y += y_row) {
      put_line<kStreamed>(y, first[j + k], some.column[k]);
    }
  }
}

// The same; of whole lines in straight code.
template <index_t kItem, bool kStreamed>
PALIMPSEST_AVX2 void exchange(const std::byte* x, index_t x_row, std::byte* y, index_t y_row,
                              index_t columns, index_t ahead, bool collides) {
  constexpr index_t kSide = kCacheLine / kItem;
  if (columns >= kSide) {
    exchange_lines<kItem, kStreamed>(x, x_row, y, y_row, kSide, ahead, collides);
  } else {
    exchange_lines<kItem, kStreamed>(x, x_row, y, y_row, columns, ahead, collides);
  }
}

// Squares of lines, of y where they belong at once.
template <index_t kItem, bool kStreamed>
class Squares {
 public:
  explicit Squares(const Transposition& t) : t_(t) {}

  __attribute__((target("avx2"))) void run() const {
    const bool diagonal = t_.x_row % kSet == 0 && t_.y_row % kSet == 0 && t_.y_rows % kSide == 0;
    const index_t high = (diagonal ? 16 : 8) * kSide, wide = (diagonal ? 16 : 64) * kSide;
    for (index_t i = 0; i < t_.x_rows; i += high) {
      for (index_t j = 0; j < t_.y_rows; j += wide) {
        const index_t rows = std::min(high, t_.x_rows - i), columns = std::min(wide, t_.y_rows - j);
        if (diagonal) {
          const bool wraps = j + columns == t_.y_rows;
          diagonals(i, j, rows, columns, wraps ? rows * t_.x_row - j * kItem : columns * kItem);
        } else {
          strips(i, j, rows, columns);
        }
      }
    }
  }

 private:
  static constexpr index_t kSide = kCacheLine / kItem;
  static constexpr index_t kAhead = 4 * kCacheLine;

  PALIMPSEST_AVX2 void strips(index_t i0, index_t j0, index_t rows, index_t columns) const {
    for (index_t i = i0; i < i0 + rows; i += kSide) {
      for (index_t j = j0; j < j0 + columns; j += kSide) square(i, j, kAhead, false);
    }
  }

  // `ahead`: how far away the block is that comes next.
  PALIMPSEST_AVX2 void diagonals(index_t i0, index_t j0, index_t rows, index_t columns,
                                 index_t ahead) const {
    for (index_t d = 0; d < columns; d += kSide) {
      for (index_t k = 0, j = d; k < rows; k += kSide, j += kSide) {
        if (j >= columns) j -= columns;
        square(i0 + k, j0 + j, ahead, true);
      }
    }
  }

  PALIMPSEST_AVX2 void square(index_t i, index_t j, index_t ahead, bool collides) const {
    exchange<kItem, kStreamed>(t_.x + i * t_.x_row + j * kItem, t_.x_row,
                               t_.y + j * t_.y_row + i * kItem, t_.y_row, t_.y_rows - j, ahead,
                               collides);
  }

  const Transposition& t_;
};

// Lines of y that do not begin where squares do. A few columns of squares go into a buffer; what they
// leave of a row of y is written in whole lines, and the rest of it waits before those that come next.
template <index_t kItem>
class ShiftedLines {
 public:
  explicit ShiftedLines(const Transposition& t) : t_(t) {}

  __attribute__((target("avx2"))) void run() const {
    alignas(kCacheLine) std::byte buffer[kWide * kPitch];
    for (index_t j = 0; j < t_.y_rows; j += kWide) {
      const index_t columns = std::min(kWide, t_.y_rows - j);
      for (index_t i = 0; i < t_.x_rows; i += kHigh) {
        const index_t rows = std::min(kHigh, t_.x_rows - i);
        const bool wraps = i + rows == t_.x_rows;
        fill(i, j, rows, columns, wraps ? kWide * kItem - i * t_.x_row : rows * t_.x_row, buffer);
        for (index_t k = 0; k < columns; ++k) {
          write_lines(buffer + k * kPitch, t_.y + (j + k) * t_.y_row + i * kItem, i == 0,
                      rows / kSide);
        }
      }
      for (index_t k = 0; k < columns; ++k) {
        std::byte* const end = t_.y + (j + k) * t_.y_row + t_.x_rows * kItem;
        const index_t rest = after_line(end);
        std::memcpy(end - rest, buffer + k * kPitch + kCacheLine - rest,
                    static_cast<std::size_t>(rest));
      }
    }
  }

 private:
  static constexpr index_t kSide = kCacheLine / kItem;
  static constexpr index_t kHigh = 4 * kSide, kWide = std::max<index_t>(64, 512 / kItem);
  // Of the buffer: a line for what waits, then what came.
  static constexpr index_t kPitch = kCacheLine + kHigh * kItem;

  static index_t after_line(const std::byte* p) {
    return static_cast<index_t>(reinterpret_cast<std::uintptr_t>(p) % std::uintptr_t{kCacheLine});
  }

  PALIMPSEST_AVX2 void fill(index_t i0, index_t j0, index_t rows, index_t columns, index_t ahead,
                            std::byte* buffer) const {
    const bool collides = t_.x_row % kSet == 0;
    for (index_t i = 0; i < rows; i += kSide) {
      for (index_t j = 0; j < columns; j += kSide) {
        exchange<kItem, false>(t_.x + (i0 + i) * t_.x_row + (j0 + j) * kItem, t_.x_row,
                               buffer + j * kPitch + kCacheLine + i * kItem, kPitch, columns - j,
                               ahead, collides);
      }
    }
  }

  // Of the first line there is only what is not waiting.
  PALIMPSEST_AVX2 static void write_lines(std::byte* row, std::byte* to, bool is_first, index_t n) {
    const index_t waiting = after_line(to);
    const std::byte* from = row + kCacheLine - waiting;
    to -= waiting;
    index_t k = 0;
    if (is_first && waiting > 0) {
      std::memcpy(to + waiting, from + waiting, static_cast<std::size_t>(kCacheLine - waiting));
      k = 1;
    }
    for (; k < n; ++k) {
      put_line<true>(to + k * kCacheLine, get(from + k * kCacheLine),
                     get(from + k * kCacheLine + kRegister));
    }
    const __m256d low = get(row + n * kCacheLine), high = get(row + n * kCacheLine + kRegister);
    put_line<false>(row, low, high);
  }

  const Transposition& t_;
};

template <index_t kItem>
void run(const Transposition& t) {
  if (!t.streamed) return Squares<kItem, false>(t).run();
  if (on_line(t.y) && t.y_row % kCacheLine == 0) {
    Squares<kItem, true>(t).run();
  } else {
    ShiftedLines<kItem>(t).run();
  }
  finish_streams();
}

}  // namespace

index_t columns_of_lines(std::size_t item) {
  static const bool has_registers = __builtin_cpu_supports("avx2");
  if (!has_registers) return 0;
  if (item == 4) return Columns<4>::kCount;
  if (item == 8) return Columns<8>::kCount;
  return item == 16 ? Columns<16>::kCount : 0;
}

void transpose_lines(std::size_t item, const Transposition& t) {
  if (item == 4) return run<4>(t);
  if (item == 8) return run<8>(t);
  run<16>(t);
}
#else
index_t columns_of_lines(std::size_t) { return 0; }
void transpose_lines(std::size_t, const Transposition&) {}
#endif

}  // namespace palimpsest
