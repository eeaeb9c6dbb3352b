// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

namespace palimpsest::testing {

/// How many times as long as usual a random test shall run: PALIMPSEST_LONG, which the test preset
/// `long` sets; else 1.
inline int length_factor() {
  const char* const factor = std::getenv("PALIMPSEST_LONG");
  return factor == nullptr ? 1 : std::atoi(factor);
}

inline int longer(int n) { return n * length_factor(); }

/// For tests that find no more under a sanitizer, which costs about ten times as much per step: a
/// tenth there.
inline int longer_unless_sanitized(int n) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  n /= 10;
#endif
  return longer(n);
}

}  // namespace palimpsest::testing
