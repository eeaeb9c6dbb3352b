// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Steps 0, 1, ... in a legal order, and the memory that they use.
struct OrderProblem {
  struct Buffer {
    index_t bytes = 0;
    std::vector<int> steps;  // that read or write it, rising; it lives from the first to the last
    bool is_kept = false;    // to the end
  };
  int n_steps = 0;
  std::vector<Buffer> buffers;
  std::vector<std::pair<int, int>> constraints;  // the first before the second, and lower
};

/// The largest sum of live bytes when the steps run in that order.
index_t peak_of(const OrderProblem& problem, std::span<const int> order);

/// An order with a low peak: the lowest for few steps (16, or more when their constraints leave
/// little choice) and for trees, in which each step's result is read by one other; else the best of
/// a beam search. Never one with a higher peak than the given order, which is returned when no
/// lower one is found. Deterministic. `effort` multiplies the work of the searches; at 1 the exact
/// search is short if no order could save another 1 KiB.
///
/// Source  Liu 1987 (doi:10.1137/0608031) for trees
std::vector<int> low_peak_order(const OrderProblem& problem, double effort = 1);

}  // namespace palimpsest
