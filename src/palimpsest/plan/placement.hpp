// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>
#include <span>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Alignment of every offset in an arena.
inline constexpr index_t kArenaAlignment = 64;

/// A buffer to be placed: bytes, and the first and last step at which it is live.
struct Interval {
  index_t bytes = 0;
  int first = 0, last = 0;
  index_t offset = 0;  // the answer
};

struct ArenaSize {
  index_t bytes = 0;        // of the arena
  index_t lower_bound = 0;  // largest sum of live bytes at one step
};

struct PlacementOptions {
  index_t alignment = kArenaAlignment;
  /// Bytes of an arena that is good enough; half of the effort is spent on it in addition. If it is
  /// not met, the result is that of the same effort without a capacity.
  index_t capacity = 0;
  /// Effort of the search for a smaller arena; one unit takes 0.2 to 1 ms of processor time.
  /// Equal efforts give equal answers on every machine.
  double effort = 100;
};

/// Gives every buffer an offset such that buffers that are live at a common step are disjoint.
///
/// First fit in several orders and a skyline; where these leave a gap to the lower bound, a search
/// that tries to close it: exact within its effort, so that few and awkward buffers are packed
/// perfectly. Deterministic.
/// Cost  O(n^1.5) for many buffers, O(n^2) for up to some thousands, plus the effort
/// Source  Sekiyama et al. 2018 (arXiv:1804.10001) for the skyline; Moffitt 2023
///         (doi:10.1145/3623278.3624752) for the search's pruning
ArenaSize place(std::span<Interval> intervals, const PlacementOptions& options = {});

}  // namespace palimpsest
