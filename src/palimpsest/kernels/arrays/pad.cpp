// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/pad.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "palimpsest/copy/strided_copy.hpp"

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
  // Fills the frame: a slab at either end of each axis. The rest shrinks down to x.
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

index_t source_of(PadRule rule, index_t i, index_t n) {
  const auto modulo = [](index_t a, index_t b) { return (a % b + b) % b; };
  switch (rule) {
    case PadRule::edge:
      return std::clamp<index_t>(i, 0, n - 1);
    case PadRule::wrap:
      return modulo(i, n);
    case PadRule::reflect:
      break;
  }
  if (n == 1) return 0;
  const index_t period = 2 * (n - 1), k = modulo(i, period);
  return k < n ? k : period - k;
}

namespace {

// Calls f(border slab, slab of the centre to copy there) for every position of an axis outside the
// centre. Slabs cover the preceding axes fully, the following ones within the centre only.
template <class F>
void for_each_border_slab(std::byte* data, DType dtype, std::span<const index_t> extents,
                          std::span<const index_t> strides, std::span<const index_t> centre,
                          std::span<const index_t> before, PadRule rule, std::size_t axis, F&& f) {
  const auto item = static_cast<index_t>(item_size(dtype));
  Extents slab(extents);
  for (std::size_t k = axis; k < extents.size(); ++k) {
    slab[k] = k == axis ? 1 : centre[k];
    if (k > axis) data += before[k] * strides[k] * item;
  }
  for (index_t i = 0; i < extents[axis]; ++i) {
    const index_t inside = i - before[axis];
    if (inside >= 0 && inside < centre[axis]) continue;
    const index_t source = before[axis] + source_of(rule, inside, centre[axis]);
    f(MutableView{data + i * strides[axis] * item, dtype, slab, strides},
      MutableView{data + source * strides[axis] * item, dtype, slab, strides});
  }
}

}  // namespace

void run_pad_around(const ConstView& x, std::span<const index_t> before, PadRule rule,
                    const MutableView& y) {
  assert(x.rank() == y.rank() && before.size() == y.rank());
  auto* data = static_cast<std::byte*>(y.data);
  std::byte* centre = data;
  for (std::size_t k = 0; k < y.rank(); ++k) {
    centre += before[k] * y.strides[k] * static_cast<index_t>(item_size(y.dtype));
  }
  strided_copy(x, {centre, y.dtype, x.extents, y.strides});
  for (std::size_t axis = 0; axis < y.rank(); ++axis) {
    for_each_border_slab(
        data, y.dtype, y.extents, y.strides, x.extents, before, rule, axis,
        [](const MutableView& border, const MutableView& source) { strided_copy(source, border); });
  }
}

void run_fold(const ConstView& w, std::span<const index_t> before, PadRule rule,
              const ElementwiseProgram& sum, const MutableView& y, std::span<std::byte> scratch) {
  assert(w.rank() == y.rank() && before.size() == y.rank() && w.dtype == y.dtype);
  const Strides strides = contiguous_strides(w.extents);
  std::byte* data = scratch.data();
  strided_copy(w, {data, w.dtype, w.extents, strides});
  for (std::size_t axis = w.rank(); axis-- > 0;) {
    for_each_border_slab(data, w.dtype, w.extents, strides, y.extents, before, rule, axis,
                         [&](const MutableView& border, const MutableView& source) {
                           const ConstView operands[] = {source, border};
                           run_elementwise(sum, operands, {&source, 1});
                         });
  }
  for (std::size_t k = 0; k < y.rank(); ++k) {
    data += before[k] * strides[k] * static_cast<index_t>(item_size(y.dtype));
  }
  strided_copy({data, w.dtype, y.extents, strides}, y);
}

}  // namespace palimpsest
