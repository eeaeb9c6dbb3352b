// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/byte_sets.hpp"

#include <algorithm>

#include "palimpsest/run/debug_value.hpp"

namespace palimpsest {
Layout layout_of(const ConstView& view) {
  return {view.dtype, Extents(view.extents.begin(), view.extents.end()),
          Strides(view.strides.begin(), view.strides.end()), 0};
}

ByteMask mask_of(const Layout& layout) {
  const Span span = span_of(layout);
  ByteMask mask(span.bytes, false);
  if (span.bytes == 0) return mask;
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  Extents index(layout.extents.size(), 0);
  index_t offset = span.first;
  for (;;) {
    std::fill_n(mask.begin() + offset, item, true);
    std::size_t axis = index.size();
    for (;;) {
      if (axis == 0) return mask;
      --axis;
      offset += layout.strides[axis] * item;
      if (++index[axis] < layout.extents[axis]) break;
      offset -= layout.strides[axis] * layout.extents[axis] * item;
      index[axis] = 0;
    }
  }
}

ByteRange range_of(const ConstView& view) {
  const Span span = span_of(layout_of(view));
  if (span.bytes == 0) return {};
  const auto* const begin = static_cast<const std::byte*>(view.data) - span.first;
  return {begin, begin + span.bytes};
}

bool bytes_meet(const ConstView& a, const ConstView& b) {
  const ByteRange first = range_of(a), second = range_of(b);
  if (first.empty() || second.empty()) return false;
  const std::byte* const begin = std::max(first.begin, second.begin);
  const std::byte* const end = std::min(first.end, second.end);
  if (begin >= end) return false;
  const ByteMask in_a = mask_of(layout_of(a)), in_b = mask_of(layout_of(b));
  for (const std::byte* p = begin; p < end; ++p) {
    if (in_a[static_cast<std::size_t>(p - first.begin)] &&
        in_b[static_cast<std::size_t>(p - second.begin)]) {
      return true;
    }
  }
  return false;
}

bool holds(const Region& region, const TensorType& type, index_t byte, index_t width) {
  if (!region.is_box()) return region.meets(Region::lattice(byte, {}, width), type);
  index_t element = byte / static_cast<index_t>(item_size(type.dtype));
  std::vector<Region::Range> index(type.rank());
  for (std::size_t k = type.rank(); k-- > 0;) {
    index[k] = {element % type.shape[k], 1, 1, -1};
    element /= type.shape[k];
  }
  return region.meets(Region::box(std::move(index), 0), type);
}

bool share_an_input(const AliasMap& map, std::size_t a, std::size_t b) {
  const auto first = map.find(static_cast<int>(a)), second = map.find(static_cast<int>(b));
  if (first == map.end() || second == map.end()) return false;
  return std::any_of(first->second.begin(), first->second.end(),
                     [&](int i) { return second->second.contains(i); });
}

std::string text_of(const std::set<int>& positions) {
  std::string text;
  for (int i : positions) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return "[" + text + "]";
}

std::string text_of(const AliasMap& map) {
  std::string text;
  for (const auto& [output, inputs] : map) {
    text += (text.empty() ? "" : ", ") + std::to_string(output) + ": " + text_of(inputs);
  }
  return "{" + text + "}";
}

}  // namespace palimpsest
