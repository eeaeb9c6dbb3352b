// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Alignment of every offset in an arena.
inline constexpr index_t kArenaAlignment = 64;

/// One buffer to be placed: bytes, and the first and last step at which it is live.
struct Interval {
  index_t bytes = 0;
  int first = 0, last = 0;
  index_t offset = 0;  // the answer
};

struct Placement {
  index_t bytes = 0;        // of the arena
  index_t lower_bound = 0;  // largest sum of live bytes at one step
};

/// Gives every buffer an offset such that buffers that are live at a common step are disjoint.
///
/// Cost  O(n^2 log n); the best of first fit in several orders
Placement place(std::span<Interval> intervals);

}  // namespace palimpsest
