// SPDX-License-Identifier: Apache-2.0
// Internal: exchanges the two axes of a matrix of plain elements; pieces of a copy.
#pragma once

#include <cstddef>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// y[j, i] = x[i, j]: row i of x begins at x + i x_row, row j of y at y + j y_row, both dense; any
/// signs. Steps in bytes.
struct Transposition {
  const std::byte* x;
  std::byte* y;
  index_t x_row, y_row;
  index_t x_rows, y_rows;  // i < x_rows, j < y_rows
  bool streamed = false;   // y is written past the caches where whole lines allow it
};

/// True if rows of both sides are so far apart that lines of neighbours fall into one set of the
/// first cache.
inline bool rows_collide(const Transposition& t) {
  constexpr index_t kSet = 2048;
  return t.x_row % kSet == 0 && t.y_row % kSet == 0;
}

/// Aliases  disjoint
/// Cost     one pass; at most 80 KiB of stack
template <std::size_t kItem>
void transpose(const Transposition& t);

extern template void transpose<4>(const Transposition& t);
extern template void transpose<8>(const Transposition& t);
extern template void transpose<16>(const Transposition& t);

/// strided_copy of a part of something of `total_bytes`, which decides whether it goes past the
/// caches.
void strided_copy_piece(const ConstView& x, const MutableView& out, index_t total_bytes);

}  // namespace palimpsest
