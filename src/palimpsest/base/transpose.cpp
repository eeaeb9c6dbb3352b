// SPDX-License-Identifier: Apache-2.0
// A tile goes through a buffer: whole lines of x are read, one after the other, exchanged in
// registers, and whole lines of y are written. Where rows are a power of two apart, all lines of a
// column fall into few sets of a cache; a line that is used at once cannot be driven out before.
#include "palimpsest/base/transpose.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "palimpsest/base/transpose_wide.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace palimpsest {
namespace {

constexpr index_t kLine = 64, kRegister = 16;

constexpr index_t kBufferBytes = 98304;

// The size of a tile: long pieces of the rows of x, which the processor reads ahead, and of the rows of
// y whole lines, which are written once. Where one side of the matrix is short the other one of the tile
// is longer, so that each page that is visited gives or takes as much.
struct Tile {
  Tile(const Transposition& t, index_t item, bool wide) {
    const index_t piece_of_x = (!wide ? 256 : (t.streamed ? 2048 : 512)) / item;
    const index_t piece_of_y = (wide && t.streamed ? 128 : 256) / item;
    const index_t elements = piece_of_x * piece_of_y;
    rows_of_y = std::min(t.y_rows, std::max(piece_of_x, elements / t.x_rows));
    const index_t whole_lines = kLine / item;
    rows_of_x = std::min(t.x_rows, elements / rows_of_y);
    rows_of_x = (rows_of_x + whole_lines - 1) / whole_lines * whole_lines;
    pitch = rows_of_x * item + kLine;
    rows_of_y = std::min(rows_of_y, kBufferBytes / pitch);
  }

  index_t rows_of_x, rows_of_y;
  index_t pitch;  // of the buffer
};

// The lines of the tile that comes next, asked for one by one while this one is written.
class Ahead {
 public:
  Ahead(const std::byte* row, index_t step, index_t bytes, index_t rows)
      : row_(row), step_(step), bytes_(bytes), rows_(rows) {}
  void ask() {
    if (rows_ <= 0) return;
    __builtin_prefetch(row_ + at_);
    at_ += kLine;
    if (at_ < bytes_) return;
    at_ = 0;
    row_ += step_;
    --rows_;
  }

 private:
  const std::byte* row_;
  index_t step_, bytes_, rows_, at_ = 0;
};

template <class V>
V get(const std::byte* p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}
template <class V>
void put(std::byte* p, V v) {
  std::memcpy(p, &v, sizeof(V));
}

// A square of registers: row k of x at x + k x_row, row k of y at y + k y_row.
template <std::size_t kItem>
void exchange(const std::byte* x, index_t x_row, std::byte* y, index_t y_row) {
  if constexpr (kItem == 4) {
    using V = std::uint32_t __attribute__((vector_size(kRegister)));
    const V a = get<V>(x), b = get<V>(x + x_row), c = get<V>(x + 2 * x_row),
            d = get<V>(x + 3 * x_row);
    const V ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const V cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const V ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const V cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    put<V>(y, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    put<V>(y + y_row, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
    put<V>(y + 2 * y_row, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
    put<V>(y + 3 * y_row, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
  } else if constexpr (kItem == 8) {
    using V = std::uint64_t __attribute__((vector_size(kRegister)));
    const V a = get<V>(x), b = get<V>(x + x_row);
    put<V>(y, __builtin_shufflevector(a, b, 0, 2));
    put<V>(y + y_row, __builtin_shufflevector(a, b, 1, 3));
  } else {
    std::memcpy(y, x, kItem);
  }
}

// Rows [i, i + k) of x into columns of the buffer, k at most a register; n elements each.
template <std::size_t kItem>
void fill_columns(const std::byte* x, index_t x_row, index_t k, index_t n, std::byte* columns,
                  index_t pitch) {
  constexpr index_t kItemBytes{kItem}, kSide = kRegister / kItemBytes;
  index_t j = 0;
  if (k == kSide) {
    for (; j + kSide <= n; j += kSide) {
      exchange<kItem>(x + j * kItemBytes, x_row, columns + j * pitch, pitch);
    }
  }
  for (; j < n; ++j) {
    for (index_t i = 0; i < k; ++i) {
      std::memcpy(columns + j * pitch + i * kItemBytes, x + i * x_row + j * kItemBytes, kItem);
    }
  }
}

void write_row(const std::byte* from, std::byte* to, index_t bytes, [[maybe_unused]] bool streamed,
               Ahead& ahead) {
  index_t k = 0;
#if defined(__SSE2__)
  if (streamed && reinterpret_cast<std::uintptr_t>(to) % kLine == 0) {
    for (; k + kLine <= bytes; k += kLine) {
      ahead.ask();
      for (index_t i = k; i < k + kLine; i += kRegister) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), get<__m128i>(from + i));
      }
    }
  }
#endif
  for (; k + kLine <= bytes; k += kLine) {
    ahead.ask();
    std::memcpy(to + k, from + k, kLine);
  }
  if (k < bytes) std::memcpy(to + k, from + k, static_cast<std::size_t>(bytes - k));
}

}  // namespace

template <std::size_t kItem>
void transpose(const Transposition& t) {
  constexpr index_t kItemBytes{kItem}, kNarrow = kRegister / kItemBytes, kSide = 2 * kNarrow;
  const ExchangeSquares squares = wide_squares(kItem);
  const Tile tile(t, kItemBytes, squares != nullptr);
  alignas(kLine) std::array<std::byte, kBufferBytes> buffer;
  for (index_t j0 = 0; j0 < t.y_rows; j0 += tile.rows_of_y) {
    const index_t n = std::min(tile.rows_of_y, t.y_rows - j0);
    for (index_t i0 = 0; i0 < t.x_rows; i0 += tile.rows_of_x) {
      const index_t m = std::min(tile.rows_of_x, t.x_rows - i0);
      for (index_t i = 0; i < m; i += kSide) {
        const std::byte* from = t.x + (i0 + i) * t.x_row + j0 * kItemBytes;
        const index_t rows = std::min(kSide, m - i);
        std::byte* columns = buffer.data() + i * kItemBytes;
        const bool whole = squares != nullptr && rows == kSide;
        const index_t done = whole ? squares(from, t.x_row, n, columns, tile.pitch) : 0;
        for (index_t k = 0; k < rows && done < n; k += kNarrow) {
          fill_columns<kItem>(from + k * t.x_row + done * kItemBytes, t.x_row,
                              std::min(kNarrow, rows - k), n - done,
                              columns + k * kItemBytes + done * tile.pitch, tile.pitch);
        }
      }
      const bool wraps = i0 + tile.rows_of_x >= t.x_rows;
      const index_t next_i = wraps ? 0 : i0 + tile.rows_of_x;
      const index_t next_j = wraps ? j0 + tile.rows_of_y : j0;
      Ahead ahead(t.x + next_i * t.x_row + next_j * kItemBytes, t.x_row,
                  std::min(tile.rows_of_y, t.y_rows - next_j) * kItemBytes,
                  next_j < t.y_rows ? std::min(tile.rows_of_x, t.x_rows - next_i) : 0);
      for (index_t j = 0; j < n; ++j) {
        write_row(buffer.data() + j * tile.pitch, t.y + (j0 + j) * t.y_row + i0 * kItemBytes,
                  m * kItemBytes, t.streamed, ahead);
      }
    }
  }
#if defined(__SSE2__)
  if (t.streamed) _mm_sfence();
#endif
}

template void transpose<4>(const Transposition& t);
template void transpose<8>(const Transposition& t);
template void transpose<16>(const Transposition& t);

}  // namespace palimpsest
