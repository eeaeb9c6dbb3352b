// SPDX-License-Identifier: Apache-2.0
// Internal: pairwise sums of up to 2^44 leaves.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

inline constexpr index_t kCascadeLevels = 44;
/// Alignment of rows of sums, in bytes.
inline constexpr index_t kCascadeUnit = 64;

// Sums of 2^l leaves at level l. The sum of a level is valid if its bit is set in the count of
// leaves. Each level has its own row of memory.
template <index_t kBytes>
class Cascade {
 public:
  using Combine = void (*)(const std::byte* x, std::byte* accumulators, index_t n);
  // For sums of n elements of `item` bytes each.
  Cascade(Combine combine, index_t item, index_t n) : combine_(combine), n_(n) {
    row_bytes_ = (n * item + kCascadeUnit - 1) / kCascadeUnit * kCascadeUnit;
  }
  /// The memory for the next leaf.
  std::byte* next() { return next_; }
  /// Adds the contents of next(): one leaf, or the sum of 2^level leaves where takes() allows it.
  void push(std::size_t level = 0) {
    const std::uint64_t leaves = std::uint64_t{1} << level;
    for (; has(count_, level); ++level) combine_(rows_[level], next_, n_);
    if (has(made_, level)) {
      std::swap(next_, rows_[level]);
    } else {
      made_ |= std::uint64_t{1} << level;
      rows_[level] = std::exchange(next_, fresh());
    }
    count_ += leaves;
  }
  /// May the sum of `leaves` leaves, a power of two, be pushed now?
  bool takes(int leaves) const { return count_ % static_cast<std::uint64_t>(leaves) == 0; }
  const std::byte* total() {
    auto level = static_cast<std::size_t>(std::countr_zero(count_));
    for (std::uint64_t rest = count_ & (count_ - 1); rest != 0; rest &= rest - 1) {
      const auto higher = static_cast<std::size_t>(std::countr_zero(rest));
      combine_(rows_[level], rows_[higher], n_);
      level = higher;
    }
    return rows_[level];
  }

 private:
  static bool has(std::uint64_t levels, std::size_t level) { return (levels >> level & 1) != 0; }
  std::byte* fresh() {
    used_ += row_bytes_;
    assert(used_ + row_bytes_ <= kBytes);
    return memory_.data() + used_;
  }

  Combine combine_;
  index_t n_, row_bytes_, used_ = 0;
  std::uint64_t count_ = 0, made_ = 0;
  std::array<std::byte*, kCascadeLevels> rows_;
  alignas(kCascadeUnit) std::array<std::byte, kBytes> memory_;
  std::byte* next_ = memory_.data();
};

}  // namespace palimpsest
