// SPDX-License-Identifier: Apache-2.0
// Internal: short loops whose length is known when they are compiled.
#pragma once

#include <type_traits>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Calls loop(n), for common short lengths with a std::integral_constant: rows within blocks are often
/// a cache line or less, and a constant makes straight code of them.
template <class Loop>
void with_length(index_t n, Loop loop) {
  switch (n) {
    case 2:
      return loop(std::integral_constant<index_t, 2>());
    case 4:
      return loop(std::integral_constant<index_t, 4>());
    case 6:
      return loop(std::integral_constant<index_t, 6>());
    case 8:
      return loop(std::integral_constant<index_t, 8>());
    case 12:
      return loop(std::integral_constant<index_t, 12>());
    case 16:
      return loop(std::integral_constant<index_t, 16>());
    case 32:
      return loop(std::integral_constant<index_t, 32>());
    default:
      return loop(n);
  }
}

}  // namespace palimpsest
