// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/shape.hpp"

namespace PALIMPSEST_API palimpsest {

/// A view of a storage, in bytes.
struct ByteLayout {
  std::int64_t offset = 0;  ///< of the first element
  Extents shape;
  Strides strides;
  int item_size = 1;

  friend bool operator==(const ByteLayout&, const ByteLayout&) = default;
};

/// Bytes [lo, hi).
struct Extent {
  std::int64_t lo = 0, hi = 0;
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

/// The bytes from the lowest to the highest that a view reaches; lo = hi without elements.
/// OverflowError beyond 63 bits.
Extent memory_extent(const ByteLayout& view);

}  // namespace palimpsest
