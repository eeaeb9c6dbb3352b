// SPDX-License-Identifier: Apache-2.0
// Internal: which bytes arrays occupy.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest {

/// The layout of a view, as if its first element were at offset 0.
Layout layout_of(const ConstView& view);

/// Per byte of a span: does an element cover it?
using ByteMask = std::vector<bool>;
/// Over span_of(layout).
ByteMask mask_of(const Layout& layout);

struct ByteRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool empty() const { return begin == end; }
};
/// From the first byte of an array to its last; empty for an array without elements.
ByteRange range_of(const ConstView& view);
/// True if two arrays have a byte in common. Exact.
bool bytes_meet(const ConstView& a, const ConstView& b);

/// True if a region of a row-major array of this type holds one of `width` bytes from `byte` on.
bool holds(const Region& region, const TensorType& type, index_t byte, index_t width);

/// True if two outputs name a common input.
bool share_an_input(const AliasMap& map, std::size_t a, std::size_t b);
/// `{0: [1, 2]}`.
std::string text_of(const AliasMap& map);
/// `[1, 2]`.
std::string text_of(const std::set<int>& positions);

}  // namespace palimpsest
