// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/element_copy.hpp"

#include <cstring>

#include "palimpsest/memory/device_copy.hpp"

namespace palimpsest {
namespace {

// An axis; a size that the compiler knows makes each copy a load and a store.
template <std::size_t kItem>
void copy_axis(const std::byte* source, std::int64_t source_step, std::byte* target,
               std::int64_t target_step, index_t n) {
  for (index_t i = 0; i < n; ++i) {
    std::memcpy(target + i * target_step, source + i * source_step, kItem);
  }
}

void copy_last_axis(int item_size, const std::byte* source, std::int64_t source_step,
                    std::byte* target, std::int64_t target_step, index_t n) {
  // The target is dense: its step is that of an item, or 0 for a single one.
  if (source_step == item_size) {
    std::memcpy(target, source, static_cast<std::size_t>(n * item_size));
    return;
  }
  switch (item_size) {
    case 1:
      return copy_axis<1>(source, source_step, target, target_step, n);
    case 2:
      return copy_axis<2>(source, source_step, target, target_step, n);
    case 4:
      return copy_axis<4>(source, source_step, target, target_step, n);
    case 8:
      return copy_axis<8>(source, source_step, target, target_step, n);
    case 16:
      return copy_axis<16>(source, source_step, target, target_step, n);
    default:
      for (index_t i = 0; i < n; ++i) {
        std::memcpy(target + i * target_step, source + i * source_step,
                    static_cast<std::size_t>(item_size));
      }
  }
}

void copy_axes(const ByteLayout& view, const ByteLayout& dense, std::size_t axis,
               const std::byte* source, std::byte* target) {
  const index_t n = dense.strides[axis] == 0 ? 1 : view.shape[axis];
  if (axis + 1 == view.shape.size()) {
    copy_last_axis(view.item_size, source, view.strides[axis], target, dense.strides[axis], n);
    return;
  }
  for (index_t i = 0; i < n; ++i) {
    copy_axes(view, dense, axis + 1, source + i * view.strides[axis],
              target + i * dense.strides[axis]);
  }
}

bool has_elements(const ByteLayout& view) {
  for (const index_t n : view.shape) {
    if (n == 0) return false;
  }
  return true;
}

}  // namespace

Extent memory_extent(const ByteLayout& view) {
  Extent extent{view.offset, view.offset};
  if (!has_elements(view)) return extent;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (view.shape[axis] == 1) continue;
    const std::int64_t reach = checked_multiply(view.shape[axis] - 1, view.strides[axis]);
    std::int64_t& end = reach < 0 ? extent.lo : extent.hi;
    end = checked_add(end, reach);
  }
  extent.hi = checked_add(extent.hi, view.item_size);
  return extent;
}

ByteLayout dense_layout(const ByteLayout& view) {
  ByteLayout dense = view;
  std::int64_t step = view.item_size;
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    const bool is_repeated = view.strides[axis] == 0 || view.shape[axis] == 1;
    dense.strides[axis] = is_repeated ? 0 : step;
    if (!is_repeated) step *= view.shape[axis];
  }
  return dense;
}

std::int64_t dense_bytes(const ByteLayout& view) {
  ByteLayout dense = dense_layout(view);
  dense.offset = 0;
  return memory_extent(dense).hi;
}

void copy_elements(const ByteLayout& view, const ByteLayout& dense, Device from,
                   const std::byte* source, Device to, std::byte* target) {
  if (!has_elements(view)) return;
  if (!from.is_host() || !to.is_host()) {
    Extents extents(view.shape);
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      if (dense.strides[axis] == 0) extents[axis] = 1;
    }
    Strides x_strides(view.strides), out_strides(dense.strides);
    extents.push_back(view.item_size);
    x_strides.push_back(1);
    out_strides.push_back(1);
    copy_elements_on(from, {source, DType::uint8, extents, x_strides}, to,
                     {target, DType::uint8, extents, out_strides});
  } else if (view.shape.empty()) {
    std::memcpy(target, source, static_cast<std::size_t>(view.item_size));
  } else {
    copy_axes(view, dense, 0, source, target);
  }
}

}  // namespace palimpsest
