// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

namespace palimpsest::testing {

/// The factor for the length of random tests: PALIMPSEST_LONG, which the test preset `long` sets;
/// else 1.
inline int length_factor() {
  const char* const factor = std::getenv("PALIMPSEST_LONG");
  return factor == nullptr ? 1 : std::atoi(factor);
}

inline int longer(int n) { return n * length_factor(); }

/// For tests whose coverage does not grow under a sanitizer: a tenth there, since steps take about
/// ten times as long.
inline int longer_unless_sanitized(int n) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  n /= 10;
#endif
  return longer(n);
}

}  // namespace palimpsest::testing
