// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::io_detail {

inline constexpr bool kHostIsLittle = std::endian::native == std::endian::little;

/// Reverses the bytes of each of `count` items of `size` bytes.
void swap_bytes(void* data, std::size_t size, std::size_t count);

/// The same for `count` elements of a dtype: the two parts of a complex number swap apart.
void swap_elements(void* data, DType dtype, index_t count);

/// Turns every byte of foreign booleans that is not 0 into 1: C++ does not allow other values.
void normalize_bools(void* data, index_t count);

/// A number at an address of any alignment, in the host's order or in the other one.
template <class T>
T load(const void* bytes, bool swapped) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  if (swapped) swap_bytes(&value, sizeof(T), 1);
  return value;
}

}  // namespace palimpsest::io_detail
