// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/pad.hpp"

#include <array>
#include <cassert>
#include <utility>

#include "palimpsest/base/strided_copy.hpp"

namespace palimpsest {
namespace {

// The part of a view that begins at `first` along one axis and has n elements there.
void narrow(const MutableView& y, std::byte*& data, Extents& extents, std::size_t axis,
            index_t first, index_t n) {
  data += first * y.strides[axis] * static_cast<index_t>(item_size(y.dtype));
  extents[axis] = n;
}

}  // namespace

void run_pad(const ConstView& x, std::span<const index_t> before, const void* value,
             const MutableView& y) {
  assert(x.rank() == y.rank() && before.size() == y.rank());
  // The frame, one slab at either end of each axis; what remains inside shrinks to x.
  auto* data = static_cast<std::byte*>(y.data);
  Extents extents(y.extents);
  for (std::size_t axis = 0; axis < y.rank(); ++axis) {
    const index_t end = before[axis] + x.extents[axis];
    assert(before[axis] >= 0 && end <= y.extents[axis]);
    const std::array<std::pair<index_t, index_t>, 2> slabs{
        {{0, before[axis]}, {end, y.extents[axis] - end}}};
    for (const auto& [first, n] : slabs) {
      if (n == 0) continue;
      std::byte* slab = data;
      Extents slab_extents = extents;
      narrow(y, slab, slab_extents, axis, first, n);
      strided_fill(value, {slab, y.dtype, slab_extents, y.strides});
    }
    narrow(y, data, extents, axis, before[axis], x.extents[axis]);
  }
  strided_copy(x, {data, y.dtype, extents, y.strides});
}

}  // namespace palimpsest
