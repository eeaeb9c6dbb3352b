// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/roll.hpp"

#include <algorithm>
#include <cassert>

#include "palimpsest/base/shape.hpp"
#include "palimpsest/copy/transpose.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

// Bytes of y that are written together. The two pieces of a row share cache lines, which stay in
// the core's own cache until both pieces are written. Each thread takes whole bands.
constexpr index_t kBand = index_t{1} << 18;

index_t bytes_of(std::span<const index_t> extents, DType dtype) {
  auto bytes = static_cast<index_t>(item_size(dtype));
  for (const index_t n : extents) bytes *= n;
  return bytes;
}

struct Rolling {
  ConstView x;
  std::span<const index_t> shifts;
  MutableView y;
  index_t total_bytes;

  // Writes the part of these extents at `to`, in which the axes from `axis` on are whole.
  void write(std::size_t axis, const std::byte* from, std::byte* to, const Extents& extents) const {
    if (axis == extents.size()) {
      strided_copy_piece({from, x.dtype, extents, x.strides}, {to, y.dtype, extents, y.strides},
                         total_bytes);
      return;
    }
    const index_t n = extents[axis], shift = shifts[axis];
    const index_t rows = std::max<index_t>(kBand / (bytes_of(extents, y.dtype) / n), 1);
    const auto item = static_cast<index_t>(item_size(y.dtype));
    const auto piece = [&](index_t source, index_t target, index_t count) {
      parallel_ranges((count + rows - 1) / rows, 1, [&](index_t begin, index_t end) {
        Extents band = extents;
        for (index_t i = begin * rows; i < std::min(end * rows, count); i += rows) {
          band[axis] = std::min(rows, count - i);
          write(axis + 1, from + (source + i) * x.strides[axis] * item,
                to + (target + i) * y.strides[axis] * item, band);
        }
      });
    };
    if (shift > 0) piece(n - shift, 0, shift);
    piece(0, shift, n - shift);
  }
};

}  // namespace

void run_roll(const ConstView& x, std::span<const index_t> shifts, const MutableView& y) {
  assert(x.rank() == y.rank() && shifts.size() == y.rank() && x.dtype == y.dtype);
  const index_t bytes = bytes_of(y.extents, y.dtype);
  if (bytes == 0) return;
  Rolling{x, shifts, y, bytes}.write(0, static_cast<const std::byte*>(x.data),
                                     static_cast<std::byte*>(y.data), Extents(y.extents));
}

}  // namespace palimpsest
