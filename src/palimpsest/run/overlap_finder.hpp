// SPDX-License-Identifier: Apache-2.0
// Internal: which of many tensors may show bytes of one another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "palimpsest/base/small_vector.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

namespace detail {

/// A tensor.
struct OverlapEntry {
  std::uint64_t block = 0, storage = 0;  // ids
  index_t low = 0, high = 0;             // addresses of bytes [low, high)
  index_t highest = 0;                   // of those before it in its storage, and its own
  std::uint32_t number = 0;
  std::uint32_t first = 0, last = 0;  // the entries of its storage
  std::uint32_t place = 0;            // 1 + the number of its place in a file; 0: none
  bool is_foreign = false;
  bool is_empty() const { return low == high; }
  bool meets(const OverlapEntry& other) const { return low < other.high && other.low < high; }
};
/// The entries of one block of memory, however many storages share it.
struct OverlapBlock {
  std::uint64_t id = 0;
  index_t low = 0, high = 0, highest = 0;
  std::size_t first = 0, last = 0;
  bool is_foreign = false;
};
/// The bytes of a file or a segment, which may be mapped at several addresses, that a tensor shows.
struct OverlapPlace {
  std::uint64_t device = 0, inode = 0;
  index_t low = 0, high = 0, highest = 0;
  std::uint32_t number = 0;
};

}  // namespace detail

/// Tensors in the order of their storages and of their lowest bytes: pairs that may meet are found
/// without comparing all with all. It keeps addresses: search before the first write.
///
/// Cost  O(n log n) to sort; a search: O(log n) and the tensors whose byte ranges meet. No
///       allocation for up to 16 tensors
class OverlapFinder {
 public:
  /// Adds a tensor. Its number is the count of tensors added before.
  void add(const Tensor& t);
  /// After the last add().
  void sort();
  /// True if `accept` is true for the number of another tensor whose byte range meets that of
  /// `number` in one Storage, or in two of which one is foreign. Stops at the first.
  template <class Accept>
  bool any(std::size_t number, Accept accept) const {
    const Entry& e = entries_[position_[number]];
    if (e.is_empty()) return false;
    if (any_in(e.first, e.last, e, accept)) return true;
    if (blocks_.empty()) return false;
    if (e.place > 0 && any_mapped(e, accept)) return true;
    auto block = std::partition_point(blocks_.begin(), blocks_.end(),
                                      [&](const Block& b) { return b.highest <= e.low; });
    for (; block != blocks_.end() && block->low < e.high; ++block) {
      if (block->id == e.block || !(block->is_foreign || e.is_foreign)) continue;
      for (std::size_t k = block->first; k < block->last; ++k) {
        if (entries_[k].meets(e) && accept(entries_[k].number)) return true;
      }
    }
    return false;
  }

 private:
  using Entry = detail::OverlapEntry;
  using Block = detail::OverlapBlock;
  using Place = detail::OverlapPlace;

  template <class Accept>
  bool any_in(std::size_t first, std::size_t last, const Entry& e, Accept& accept) const {
    const Entry* const end = entries_.begin() + last;
    const Entry* other = std::partition_point(
        entries_.begin() + first, end, [&](const Entry& one) { return one.highest <= e.low; });
    for (; other != end && other->low < e.high; ++other) {
      if (other->number != e.number && other->meets(e) && accept(other->number)) return true;
    }
    return false;
  }
  /// In other blocks that show the same file.
  template <class Accept>
  bool any_mapped(const Entry& e, Accept& accept) const {
    const Place& own = places_[e.place - 1];
    const auto file = std::equal_range(places_.begin(), places_.end(), own, is_in_earlier_file);
    auto other = std::partition_point(file.first, file.second,
                                      [&](const Place& p) { return p.highest <= own.low; });
    for (; other != file.second && other->low < own.high; ++other) {
      if (other->high <= own.low) continue;
      if (entries_[position_[other->number]].block == e.block) continue;
      if (accept(other->number)) return true;
    }
    return false;
  }
  static bool is_in_earlier_file(const Place& a, const Place& b) {
    return a.device != b.device ? a.device < b.device : a.inode < b.inode;
  }
  void note_storages();
  void note_blocks();
  void note_places();

  SmallVector<Entry, 32> entries_;
  SmallVector<std::uint32_t, 32> position_;  // by number
  SmallVector<Block, 1> blocks_;             // by address; only if any is foreign
  SmallVector<Place, 1> places_;             // by file and place in it
};

}  // namespace palimpsest
