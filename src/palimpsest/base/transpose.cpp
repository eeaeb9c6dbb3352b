// SPDX-License-Identifier: Apache-2.0
// A tile goes through a buffer: whole lines of x are read, one after the other, exchanged in
// registers, and whole lines of y are written. Where rows are a power of two apart, all lines of a
// column fall into few sets of a cache; a line that is used at once cannot be driven out before.
#include "palimpsest/base/transpose.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace palimpsest {
namespace {

constexpr index_t kLine = 64, kRegister = 16;

constexpr index_t kBufferBytes = 49152;

// The size of a tile. Where one side of the matrix is short the other one of the tile is longer, so
// that each page that is visited gives or takes as much.
struct Tile {
  Tile(const Transposition& t, index_t item) {
    const index_t elements = (item == 16 ? 32768 : 16384) / item;
    rows_of_y = std::min<index_t>(64, t.y_rows);
    rows_of_x = round_up(std::min(t.x_rows, elements / rows_of_y));
    pitch = rows_of_x * item + kLine;
    rows_of_y = std::min({t.y_rows, elements / rows_of_x, kBufferBytes / pitch});
  }
  static index_t round_up(index_t n) { return (n + 15) / 16 * 16; }

  index_t rows_of_x, rows_of_y;
  index_t pitch;  // of the buffer
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

void write_row(const std::byte* from, std::byte* to, index_t bytes,
               [[maybe_unused]] bool streamed) {
#if defined(__SSE2__)
  if (streamed && reinterpret_cast<std::uintptr_t>(to) % kLine == 0 && bytes % kLine == 0) {
    for (index_t k = 0; k < bytes; k += kRegister) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), get<__m128i>(from + k));
    }
    return;
  }
#endif
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

template <std::size_t kItem>
void transpose(const Transposition& t) {
  constexpr index_t kItemBytes{kItem}, kSide = kRegister / kItemBytes;
  const Tile tile(t, kItemBytes);
  alignas(kLine) std::array<std::byte, kBufferBytes> buffer;
  const index_t ahead = tile.rows_of_x * t.x_row;
  for (index_t j0 = 0; j0 < t.y_rows; j0 += tile.rows_of_y) {
    const index_t n = std::min(tile.rows_of_y, t.y_rows - j0);
    for (index_t i0 = 0; i0 < t.x_rows; i0 += tile.rows_of_x) {
      const index_t m = std::min(tile.rows_of_x, t.x_rows - i0);
      const bool more = i0 + 2 * tile.rows_of_x <= t.x_rows;
      for (index_t i = 0; i < m; i += kSide) {
        const std::byte* from = t.x + (i0 + i) * t.x_row + j0 * kItemBytes;
        const index_t rows = std::min(kSide, m - i);
        for (index_t k = 0; more && k < rows; ++k) {
          for (index_t b = 0; b < n * kItemBytes; b += kLine) {
            __builtin_prefetch(from + k * t.x_row + ahead + b);
          }
        }
        fill_columns<kItem>(from, t.x_row, rows, n, buffer.data() + i * kItemBytes, tile.pitch);
      }
      for (index_t j = 0; j < n; ++j) {
        write_row(buffer.data() + j * tile.pitch, t.y + (j0 + j) * t.y_row + i0 * kItemBytes,
                  m * kItemBytes, t.streamed);
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
