// SPDX-License-Identifier: Apache-2.0
// Internal: the parts of place(). Sizes and offsets are in units of the alignment, lives are ranges
// of sections: between two sections no life starts or ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "palimpsest/plan/placement.hpp"

namespace palimpsest::placement_detail {

struct Item {
  index_t size = 0;
  int begin = 0, end = 0;  // sections [begin, end)
};

struct Problem {
  std::vector<Item> items;
  int n_sections = 0;
  index_t lower_bound = 0;
};

/// An offset per item, and the height of all.
struct Packing {
  std::vector<index_t> offsets;
  index_t height = 0;
};

/// Counts the work that is left. A step takes a few nanoseconds.
class Effort {
 public:
  explicit Effort(std::uint64_t steps) : left_(steps) {}
  bool spend(std::uint64_t steps) {
    left_ -= steps < left_ ? steps : left_;
    return left_ > 0;
  }
  std::uint64_t left() const { return left_; }

 private:
  std::uint64_t left_;
};

/// Each item, in the given order, at the lowest offset that is free during its life. O(n^2).
Packing first_fit(const Problem& problem, std::span<const std::size_t> order);

/// Fills the lowest places first, each with the item of longest life that fits there in time.
Packing skyline(const Problem& problem);

/// A packing of at most that height: found, shown to be impossible, or not known within the effort.
enum class SearchResult { found, impossible, unknown };
SearchResult search(const Problem& problem, index_t height, Effort& effort, Packing* packing);

}  // namespace palimpsest::placement_detail
