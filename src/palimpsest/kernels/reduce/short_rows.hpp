// SPDX-License-Identifier: Apache-2.0
// Internal: loops over rows that are often a cache line or less.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Calls loop(n). For n <= 16 and n = 32, n is a std::integral_constant, so the compiler unrolls
/// the loop.
template <class Loop>
void with_length(index_t n, Loop loop) {
  const bool is_short = [&]<index_t... k>(std::integer_sequence<index_t, k...>) {
    return ((n == k + 1 && (loop(std::integral_constant<index_t, k + 1>()), true)) || ...);
  }
  (std::make_integer_sequence<index_t, 16>());
  if (is_short) return;
  n == 32 ? loop(std::integral_constant<index_t, 32>()) : loop(n);
}

/// Copies a row: a short one inline, a longer one by a call; `bytes` may be a constant.
template <class Bytes>
inline void copy_row(std::byte* to, const std::byte* from, Bytes bytes) {
  constexpr index_t kLong = 128;
  if (bytes > kLong) {
    std::memcpy(to, from, static_cast<std::size_t>(index_t{bytes}));
  } else if constexpr (std::is_same_v<Bytes, index_t>) {
    index_t i = 0;
    for (; i + 16 <= bytes; i += 16) std::memcpy(to + i, from + i, 16);
    for (; i + 8 <= bytes; i += 8) std::memcpy(to + i, from + i, 8);
    for (; i < bytes; ++i) to[i] = from[i];
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(index_t{bytes}));
  }
}

}  // namespace palimpsest
