// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/bytes.hpp"

#include <cstdint>

namespace palimpsest::io_detail {

namespace {

template <class U, class Swap>
void swap_each(void* data, std::size_t count, Swap swap) {
  auto* bytes = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < count; ++i, bytes += sizeof(U)) {
    U value;
    std::memcpy(&value, bytes, sizeof(U));
    value = swap(value);
    std::memcpy(bytes, &value, sizeof(U));
  }
}

}  // namespace

void swap_bytes(void* data, std::size_t size, std::size_t count) {
  switch (size) {
    case 1:
      return;
    case 2:
      return swap_each<std::uint16_t>(data, count, [](auto v) { return __builtin_bswap16(v); });
    case 4:
      return swap_each<std::uint32_t>(data, count, [](auto v) { return __builtin_bswap32(v); });
    case 8:
      return swap_each<std::uint64_t>(data, count, [](auto v) { return __builtin_bswap64(v); });
    default:
      throw InternalError("[swap_bytes] no element has this size");
  }
}

void swap_elements(void* data, DType dtype, index_t count) {
  const std::size_t parts = is_complex(dtype) ? 2 : 1;
  swap_bytes(data, item_size(dtype) / parts, static_cast<std::size_t>(count) * parts);
}

void normalize_bools(void* data, index_t count) {
  auto* bytes = static_cast<unsigned char*>(data);
  for (index_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
}

}  // namespace palimpsest::io_detail
