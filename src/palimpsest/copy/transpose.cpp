// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/copy/transpose.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "palimpsest/copy/stream_store.hpp"
#include "palimpsest/copy/transpose_lines.hpp"

namespace palimpsest {
namespace {

constexpr index_t kRegister = 16;
// Elements, at most, of rows of y that are written as one run.
constexpr index_t kShortRow = 64;
// The sides of a tile, in bytes.
constexpr index_t kTileBytes = 256;

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

// Tiles go through a buffer, so that whole pieces of rows are read and written on both sides: where
// rows are a power of two apart, all lines of a column fall into few sets of a cache.
template <std::size_t kItem>
void transpose_tiles(const Transposition& t) {
  constexpr index_t kItemBytes{kItem}, kNarrow = kRegister / kItemBytes;
  constexpr index_t kSide = kTileBytes / kItemBytes, kPitch = kTileBytes + kCacheLine;
  alignas(kCacheLine) std::array<std::byte, kSide * kPitch> buffer;
  for (index_t j0 = 0; j0 < t.y_rows; j0 += kSide) {
    const index_t n = std::min(kSide, t.y_rows - j0);
    for (index_t i0 = 0; i0 < t.x_rows; i0 += kSide) {
      const index_t m = std::min(kSide, t.x_rows - i0);
      for (index_t i = 0; i < m; i += kNarrow) {
        fill_columns<kItem>(t.x + (i0 + i) * t.x_row + j0 * kItemBytes, t.x_row,
                            std::min(kNarrow, m - i), n, buffer.data() + i * kItemBytes, kPitch);
      }
      for (index_t j = 0; j < n; ++j) {
        std::memcpy(t.y + (j0 + j) * t.y_row + i0 * kItemBytes, buffer.data() + j * kPitch,
                    static_cast<std::size_t>(m * kItemBytes));
      }
    }
  }
}

// Rows [i, i + rows) of x.
Transposition part_of(const Transposition& t, index_t item, index_t i, index_t rows) {
  Transposition part = t;
  part.x += i * t.x_row;
  part.y += i * item;
  part.x_rows = rows;
  return part;
}

}  // namespace

// Transposes whole cache lines of y together, and the rest at the sides in tiles.
template <std::size_t kItem>
void transpose(const Transposition& t) {
  constexpr index_t kItemBytes{kItem}, kSide = kCacheLine / kItemBytes;
  const index_t together = columns_of_lines(kItem);
  if (together == 0) return transpose_tiles<kItem>(t);
  if (t.x_rows % kSide != 0 && t.x_rows <= kShortRow && t.y_row == t.x_rows * kItemBytes) {
    return transpose_short_rows(kItem, t);
  }
  const bool is_narrow = t.y_rows < together;
  if (is_narrow && (t.y_rows == 1 || t.x_row != t.y_rows * kItemBytes)) {
    return transpose_tiles<kItem>(t);
  }
  const index_t rows = t.x_rows / kSide * kSide;
  if (rows > 0) transpose_lines(kItem, part_of(t, kItemBytes, 0, rows));
  transpose_tiles<kItem>(part_of(t, kItemBytes, rows, t.x_rows - rows));
}

template void transpose<4>(const Transposition& t);
template void transpose<8>(const Transposition& t);
template void transpose<16>(const Transposition& t);

}  // namespace palimpsest
