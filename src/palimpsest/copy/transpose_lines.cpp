// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/copy/transpose_lines.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "palimpsest/copy/stream_store.hpp"

#if defined(__x86_64__)
#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/copy/transpose_registers.hpp"
#endif

namespace palimpsest {

#if defined(__x86_64__)
namespace {

using namespace avx2;

// Transposes a strip: kSide rows of up to one cache line each. put(k, low, high) stores a line of
// y; lines `ahead` bytes further are prefetched. Half of the rows at a time: all of them may need
// more than a set of the cache has. The last columns are taken with some before them.
template <index_t kItem, class Put>
PALIMPSEST_AVX2 void exchange_lines(const std::byte* x, index_t x_row, index_t columns,
                                    index_t ahead, bool collides, const Put& put) {
  using C = Columns<kItem>;
  constexpr index_t kSide = kCacheLine / kItem;
  const index_t last = columns - C::kCount;
  for (index_t k = 0; k < kSide; ++k) ask(x + k * x_row + ahead, collides);
  __m256d first[kSide];
  _Pragma("GCC unroll 4") for (index_t j = 0; j < columns; j += C::kCount) {
    const C some(EvenRows{x + std::min(j, last) * kItem, x_row});
    for (index_t k = 0; k < C::kCount; ++k) first[j + k] = some.column[k];
  }
  x += kSide / 2 * x_row;
  _Pragma("GCC unroll 4") for (index_t j = 0; j < columns; j += C::kCount) {
    const index_t at = std::min(j, last);
    const C some(EvenRows{x + at * kItem, x_row});
    _Pragma("GCC unroll 4") for (index_t k = 0; k < C::kCount; ++k) {
      if (at + k >= j) put(at + k, first[j + k], some.column[k]);
    }
  }
}

// A line of y from each column of short rows of x.
template <index_t kItem, int kCount, class Put>
PALIMPSEST_AVX2 void unweave(const std::byte* x, index_t ahead, const Put& put) {
  using W = Weave<kItem, kCount, false>;
  __m256 low[kCount], high[kCount];
  for (index_t k = 0; k < kCount; ++k) {
    ask(x + ahead + k * kCacheLine, false);
    low[k] = _mm256_castpd_ps(get(x + k * kRegister));
    high[k] = _mm256_castpd_ps(get(x + (kCount + k) * kRegister));
  }
  put(0, W::template get<0>(low), W::template get<0>(high));
  put(1, W::template get<1>(low), W::template get<1>(high));
  if constexpr (kCount == 3) put(2, W::template get<2>(low), W::template get<2>(high));
}

// Exchanges whole lines in straight code, and partial ones in a loop. `y_rows` counts all columns
// of the matrix: `columns` and those before them.
template <index_t kItem, class Put>
PALIMPSEST_AVX2 void exchange(const std::byte* x, index_t x_row, index_t columns, index_t y_rows,
                              index_t ahead, bool collides, const Put& put) {
  constexpr index_t kSide = kCacheLine / kItem;
  if (columns >= kSide) {
    exchange_lines<kItem>(x, x_row, kSide, ahead, collides, put);
  } else if (!is_woven<kItem>(y_rows)) {
    exchange_lines<kItem>(x, x_row, columns, ahead, collides, put);
  } else if constexpr (kItem < 16) {
    columns == 2 ? unweave<kItem, 2>(x, ahead, put) : unweave<kItem, 3>(x, ahead, put);
  }
}

// Squares of lines, of y where they belong at once.
template <index_t kItem, bool kStreamed>
class Squares {
 public:
  explicit Squares(const Transposition& t) : t_(t) {}

  __attribute__((target("avx2"))) void run() const {
    const bool diagonal = rows_collide(t_) && t_.y_rows % kSide == 0;
    // Whole rows of squares: neighbouring lines are then in the cache when a line is stored.
    const index_t high = diagonal ? kBlock : (kStreamed ? 8 : 1) * kSide;
    const index_t wide = diagonal ? kBlock : kStreamed ? 64 * kSide : t_.y_rows;
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
  static constexpr index_t kBlock =
      128;  // elements; two of them, with the lines of y, fit the second cache

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
    exchange<kItem>(t_.x + i * t_.x_row + j * kItem, t_.x_row, t_.y_rows - j, t_.y_rows, ahead,
                    collides, Lines{t_.y + j * t_.y_row + i * kItem, t_.y_row});
  }

  struct Lines {
    std::byte* y;
    index_t y_row;
    PALIMPSEST_AVX2 void operator()(index_t k, __m256d low, __m256d high) const {
      put_line<kStreamed>(y + k * y_row, low, high);
    }
  };

  const Transposition& t_;
};

// Writes lines of y that do not begin where squares do. The rest of a square's line waits for the
// bytes that complete its line of y. It is shifted in registers: bytes that have just been written
// cannot be read before the stream stores in front of them are done.
template <index_t kItem>
class ShiftedLines {
 public:
  __attribute__((target("avx2"))) explicit ShiftedLines(const Transposition& t) : t_(t) {
    for (index_t k = 0; k < kSide; ++k) shift_of(k) = Shift(t.y + k * t.y_row);
  }

  __attribute__((target("avx2"))) void run() const {
    alignas(kCacheLine) std::byte waiting[kWide * kCacheLine];
    for (index_t j0 = 0; j0 < t_.y_rows; j0 += kWide) {
      const index_t columns = std::min(kWide, t_.y_rows - j0);
      for (index_t i = 0; i < t_.x_rows; i += kSide) {
        for (index_t j = 0; j < columns; j += kSide) {
          const Lines lines{t_.y + (j0 + j) * t_.y_row + i * kItem, t_.y_row,
                            waiting + j * kCacheLine, shifts_.data(), i == 0};
          exchange<kItem>(t_.x + i * t_.x_row + (j0 + j) * kItem, t_.x_row, columns - j, t_.y_rows,
                          kAhead, false, lines);
        }
      }
      for (index_t k = 0; k < columns; ++k) {
        shift_of(k).finish(waiting + k * kCacheLine,
                           t_.y + (j0 + k) * t_.y_row + t_.x_rows * kItem);
      }
    }
  }

 private:
  static constexpr index_t kSide = kCacheLine / kItem, kAhead = 4 * kCacheLine;
  static constexpr index_t kWide = 1024;  // columns whose rests wait at the same time

  // The shift of squares' lines against lines of y, the same for every kSide-th row of y. A line of
  // y consists of the last `bytes` of one square's line and the beginning of the next. Words have 4
  // bytes: each register is rotated and then joined with the one before.
  struct Shift {
    __m256i index{};  // of rotated words
    __m256 before{};  // words that come from the register before
    index_t bytes = 0;

    Shift() = default;
    PALIMPSEST_AVX2 explicit Shift(const std::byte* line)
        : bytes(static_cast<index_t>(reinterpret_cast<std::uintptr_t>(line) %
                                     std::uintptr_t{kCacheLine})) {
      const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
      const __m256i words = _mm256_set1_epi32(static_cast<int>(bytes / 4 % 8));
      index = _mm256_sub_epi32(lanes, words);
      before = _mm256_castsi256_ps(_mm256_cmpgt_epi32(words, lanes));
    }
    PALIMPSEST_AVX2 __m256 rotate(__m256d v) const {
      return _mm256_permutevar8x32_ps(_mm256_castpd_ps(v), index);
    }
    PALIMPSEST_AVX2 __m256d join(__m256 old, __m256 now) const {
      return _mm256_castps_pd(_mm256_blendv_ps(now, old, before));
    }
    // Writes a square's line that begins at `to`. `waiting` holds the last register, rotated; then
    // half a line of y, if more than half of a line comes from the square before.
    template <bool kFirst>
    PALIMPSEST_AVX2 void put(std::byte* waiting, std::byte* to, __m256d low, __m256d high) const {
      const __m256 a = rotate(low), b = rotate(high);
      auto* const last = reinterpret_cast<float*>(waiting);
      const __m256d lower = join(_mm256_load_ps(last), a), upper = join(a, b);
      _mm256_store_ps(last, b);
      if (bytes < kRegister) {
        if (kFirst && bytes > 0) return put_rest(to, lower, upper);
        put_line<true>(to - bytes, lower, upper);
      } else {
        auto* const half = reinterpret_cast<double*>(waiting + kRegister);
        const __m256d first = _mm256_load_pd(half);
        _mm256_store_pd(half, upper);
        if (kFirst) return put_rest(to, first, lower);
        put_line<true>(to - bytes, first, lower);
      }
    }
    // Writes the first line of a row: only the bytes that belong to the row.
    PALIMPSEST_AVX2 void put_rest(std::byte* to, __m256d low, __m256d high) const {
      alignas(kCacheLine) std::byte line[kCacheLine];
      put_line<false>(line, low, high);
      std::memcpy(to, line + bytes, static_cast<std::size_t>(kCacheLine - bytes));
    }
    // The beginning of the line after the last.
    PALIMPSEST_AVX2 void finish(const std::byte* waiting, std::byte* end) const {
      std::byte* to = end - bytes;
      if (bytes >= kRegister) {
        std::memcpy(to, waiting + kRegister, kRegister);
        to += kRegister;
      }
      std::memcpy(to, waiting, static_cast<std::size_t>(end - to));
    }
  };

  struct Lines {
    std::byte* y;
    index_t y_row;
    std::byte* waiting;
    const Shift* shifts;
    bool is_first;  // of their rows of y

    PALIMPSEST_AVX2 void operator()(index_t k, __m256d low, __m256d high) const {
      if (is_first) {
        shifts[k].template put<true>(waiting + k * kCacheLine, y + k * y_row, low, high);
      } else {
        shifts[k].template put<false>(waiting + k * kCacheLine, y + k * y_row, low, high);
      }
    }
  };

  Shift& shift_of(index_t column) { return shifts_[static_cast<std::size_t>(column % kSide)]; }
  const Shift& shift_of(index_t column) const {
    return shifts_[static_cast<std::size_t>(column % kSide)];
  }

  const Transposition& t_;
  std::array<Shift, static_cast<std::size_t>(kSide)> shifts_;
};

// Rows of y that are shorter than a line or do not fill lines, one after the other: they are put
// together in a buffer and written as the one run that they are.
template <index_t kItem>
class ShortRows {
 public:
  explicit ShortRows(const Transposition& t) : t_(t) {}

  __attribute__((target("avx2"))) void run() const {
    alignas(kCacheLine) std::byte buffer[kRunBytes + kRegister];
    const index_t some = kRunBytes / (t_.x_rows * kItem) / kSide * kSide;
    for (index_t j = 0; j < t_.y_rows; j += some) {
      const index_t n = std::min(some, t_.y_rows - j), bytes = n * t_.x_rows * kItem;
      index_t k = 0;
      for (; k + kSide <= n; k += kSide) fill(j + k, buffer + k * t_.x_rows * kItem);
      for (; k < n; ++k) fill_one(j + k, buffer + k * t_.x_rows * kItem);
      std::byte* const to = t_.y + j * t_.y_row;
      const index_t lines = t_.streamed && on_line(to) ? bytes / kCacheLine * kCacheLine : 0;
      for (index_t b = 0; b < lines; b += kCacheLine) {
        put_line<true>(to + b, get(buffer + b), get(buffer + b + kRegister));
      }
      std::memcpy(to + lines, buffer + lines, static_cast<std::size_t>(bytes - lines));
    }
    if (t_.streamed) finish_streams();
  }

 private:
  using C = Columns<kItem>;
  static constexpr index_t kSide = kCacheLine / kItem, kHigh = kRegister / kItem;
  static constexpr index_t kRunBytes = 8192, kAhead = 512;

  // Rows [j, j + kSide) of y; a line of a row of x at a time.
  PALIMPSEST_AVX2 void fill(index_t j, std::byte* to) const {
    const std::byte* const x = t_.x + j * kItem;
    for (index_t i = 0; i < t_.x_rows; ++i) ask(x + i * t_.x_row + kAhead, true);
    if constexpr (kItem < 16) {
      if (t_.x_rows == 2) return weave<2>(x, to);
      if (t_.x_rows == 3) return weave<3>(x, to);
    }
    if (t_.x_rows < kHigh) {
      put(FewRows(x, t_.x_row, t_.x_rows), to);
      return;
    }
    // The last rows together with some before them, unless it is only one.
    index_t i = 0;
    for (; i + 1 < t_.x_rows; i += kHigh) {
      const index_t at = std::min(i, t_.x_rows - kHigh);
      put(EvenRows{x + at * t_.x_row, t_.x_row}, to + at * kItem);
    }
    if (i < t_.x_rows) put_one(x + i * t_.x_row, to + i * kItem);
  }
  PALIMPSEST_AVX2 void put_one(const std::byte* x, std::byte* to) const {
    _Pragma("GCC unroll 16") for (index_t j = 0; j < kSide; ++j) {
      std::memcpy(to + j * t_.x_rows * kItem, x + j * kItem, std::size_t{kItem});
    }
  }
  template <int kCount>
  PALIMPSEST_AVX2 void weave(const std::byte* x, std::byte* to) const {
    using W = Weave<kItem, kCount, true>;
    for (index_t half = 0; half < 2; ++half, x += kRegister, to += kCount * kRegister) {
      __m256 row[kCount];
      for (index_t k = 0; k < kCount; ++k) row[k] = _mm256_castpd_ps(get(x + k * t_.x_row));
      auto* const y = reinterpret_cast<double*>(to);
      _mm256_storeu_pd(y, W::template get<0>(row));
      _mm256_storeu_pd(y + 4, W::template get<1>(row));
      if constexpr (kCount == 3) _mm256_storeu_pd(y + 8, W::template get<2>(row));
    }
  }
  // Stores a register for each row of y. The next store overwrites the part beyond the row.
  template <class Rows>
  PALIMPSEST_AVX2 void put(Rows rows, std::byte* to) const {
    _Pragma("GCC unroll 4") for (index_t j = 0; j < kSide; j += C::kCount) {
      const C some(rows);
      rows.x += C::kCount * kItem;
      _Pragma("GCC unroll 4") for (index_t k = 0; k < C::kCount; ++k) {
        _mm256_storeu_pd(reinterpret_cast<double*>(to + (j + k) * t_.x_rows * kItem),
                         some.column[k]);
      }
    }
  }
  void fill_one(index_t j, std::byte* to) const {
    for (index_t i = 0; i < t_.x_rows; ++i) {
      std::memcpy(to + i * kItem, t_.x + i * t_.x_row + j * kItem, std::size_t{kItem});
    }
  }

  const Transposition& t_;
};

template <index_t kItem>
void run(const Transposition& t) {
  const bool has_words = reinterpret_cast<std::uintptr_t>(t.y) % 4 == 0;
  if (!t.streamed || !has_words) return Squares<kItem, false>(t).run();
  if (on_line(t.y) && t.y_row % kCacheLine == 0) {
    Squares<kItem, true>(t).run();
  } else {
    Scratched<ShiftedLines<kItem>>(t)->run();
  }
  finish_streams();
}

}  // namespace

index_t columns_of_lines(std::size_t item) {
  const bool has_registers = __builtin_cpu_supports("avx2");
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

void transpose_short_rows(std::size_t item, const Transposition& t) {
  if (item == 4) return ShortRows<4>(t).run();
  if (item == 8) return ShortRows<8>(t).run();
  ShortRows<16>(t).run();
}
#else
index_t columns_of_lines(std::size_t) { return 0; }
void transpose_lines(std::size_t, const Transposition&) {}
void transpose_short_rows(std::size_t, const Transposition&) {}
#endif

}  // namespace palimpsest
