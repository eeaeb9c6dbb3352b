// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/guarded_window.hpp"

#include <algorithm>
#include <cstdint>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/shape.hpp"

namespace palimpsest {
namespace {

constexpr index_t kAlignment = 64;

// Differs from its neighbours, so that a copy of a part of the array to another place is seen.
std::uint8_t pattern_at(index_t byte) {
  const auto mixed = static_cast<std::uint64_t>(byte + 1) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::uint8_t>(mixed >> 56U);
}

Tensor pattern(index_t bytes) {
  Tensor made = Tensor::empty({bytes}, DType::uint8);
  auto* const data = made.mutable_data<std::uint8_t>();
  for (index_t i = 0; i < bytes; ++i) data[i] = pattern_at(i);
  return made;
}

Strides strides_for(const Extents& extents, WindowLayout layout) {
  Strides strides = contiguous_strides(extents);
  if (layout == WindowLayout::transposed) {
    index_t step = 1;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      strides[axis] = step;
      step *= std::max<index_t>(extents[axis], 1);
    }
  }
  for (index_t& stride : strides) {
    if (layout == WindowLayout::strided) stride *= 2;
    if (layout == WindowLayout::reversed) stride = -stride;
  }
  return strides;
}

// The bytes of the elements of t, as a last axis, in a storage laid out like that of t. Elements
// that a broadcast axis repeats are taken once.
Tensor bytes_of(const Tensor& t, const Storage& storage) {
  const auto item = static_cast<index_t>(item_size(t.dtype()));
  Extents extents = t.shape();
  Strides strides = t.strides();
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (strides[axis] == 0) extents[axis] = std::min<index_t>(extents[axis], 1);
    strides[axis] *= item;
  }
  extents.push_back(item);
  strides.push_back(1);
  return {storage, DType::uint8, extents, strides, t.offset() * item};
}

Tensor all_bytes(const Storage& storage) {
  const auto n = static_cast<index_t>(storage.nbytes());
  return {storage, DType::uint8, {n}, {1}};
}

}  // namespace

std::string_view name_of(WindowLayout layout) {
  switch (layout) {
    case WindowLayout::dense:
      return "dense";
    case WindowLayout::shifted:
      return "shifted";
    case WindowLayout::strided:
      return "strided";
    case WindowLayout::transposed:
      return "transposed";
    case WindowLayout::reversed:
      return "reversed";
  }
  throw InternalError("[WindowLayout] not a layout");
}

Tensor storage_bytes(const Tensor& t) { return all_bytes(t.storage()).clone(); }

std::optional<index_t> first_change_beside(const Tensor& t, const Tensor& before) {
  Tensor expected = before.clone();
  bytes_of(t, expected.storage()).copy_from(bytes_of(t, t.storage()));
  const Tensor now = all_bytes(t.storage());
  const auto* const begin = now.data<std::uint8_t>();
  const auto* const end = begin + now.numel();
  const auto* const changed = std::mismatch(begin, end, expected.data<std::uint8_t>()).first;
  if (changed == end) return std::nullopt;
  const auto item = static_cast<index_t>(item_size(t.dtype()));
  return changed - begin - (t.offset() + reached_range(t.shape(), t.strides()).low) * item;
}

GuardedWindow::GuardedWindow(const Extents& extents, DType dtype, WindowLayout layout,
                             index_t least_margin) {
  const auto item = static_cast<index_t>(item_size(dtype));
  const Strides strides = strides_for(extents, layout);
  const ReachedRange range = reached_range(extents, strides);
  const index_t reach = (range.high - range.low) * item;
  const index_t margin = (std::max(least_margin, 2 * reach) / kAlignment + 1) * kAlignment;
  const index_t shift = layout == WindowLayout::dense ? 0 : item;
  window_ = Tensor(pattern(margin + shift + reach + margin).storage(), dtype, extents, strides,
                   element_count(extents) == 0 ? 0 : (margin + shift) / item - range.low);
}

void GuardedWindow::fill_bytes(std::uint8_t value) {
  bytes_of(window_, window_.storage()).fill(value);
}

std::optional<index_t> GuardedWindow::first_change() const {
  return first_change_beside(window_, pattern(static_cast<index_t>(window_.storage().nbytes())));
}

}  // namespace palimpsest
