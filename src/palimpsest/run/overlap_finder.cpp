// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/overlap_finder.hpp"

#include <tuple>

#include "palimpsest/base/shape.hpp"
#include "palimpsest/memory/file_mappings.hpp"

namespace palimpsest {

void OverlapFinder::add(const Tensor& t) {
  const Storage& storage = t.storage();
  const StorageState state = storage.state();
  Entry e;
  e.block = storage.data_id();
  e.storage = storage.id();
  e.number = static_cast<std::uint32_t>(entries_.size());
  e.is_foreign =
      state == StorageState::foreign_read_only || state == StorageState::foreign_writable;
  if (t.numel() > 0) {
    const auto item = static_cast<index_t>(item_size(t.dtype()));
    const ReachedRange range = reached_range(t.shape(), t.strides());
    const auto start = static_cast<index_t>(reinterpret_cast<std::uintptr_t>(storage.data()));
    e.low = start + (t.offset() + range.low) * item;
    e.high = start + (t.offset() + range.high) * item;
  }
  if (e.is_foreign && !e.is_empty()) {
    if (const auto place = mapped_place(storage.data(), storage.nbytes())) {
      const auto start = static_cast<index_t>(reinterpret_cast<std::uintptr_t>(storage.data()));
      places_.push_back({place->device, place->inode, e.low - start + place->offset,
                         e.high - start + place->offset, 0, e.number});
    }
  }
  entries_.push_back(e);
}

void OverlapFinder::sort() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.block, a.storage, a.low, a.number) <
           std::tie(b.block, b.storage, b.low, b.number);
  });
  note_storages();
  const auto is_foreign = [](const Entry& e) { return e.is_foreign; };
  if (std::any_of(entries_.begin(), entries_.end(), is_foreign)) note_blocks();
  note_places();
}

void OverlapFinder::note_storages() {
  position_.resize(entries_.size());
  for (std::size_t first = 0, last = 0; first < entries_.size(); first = last) {
    index_t highest = entries_[first].high;
    for (; last < entries_.size() && entries_[last].storage == entries_[first].storage; ++last) {
      highest = std::max(highest, entries_[last].high);
      entries_[last].highest = highest;
      position_[entries_[last].number] = static_cast<std::uint32_t>(last);
    }
    for (std::size_t k = first; k < last; ++k) {
      entries_[k].first = static_cast<std::uint32_t>(first);
      entries_[k].last = static_cast<std::uint32_t>(last);
    }
  }
}

void OverlapFinder::note_blocks() {
  for (std::size_t first = 0, last = 0; first < entries_.size(); first = last) {
    Block block;
    block.id = entries_[first].block;
    block.first = first;
    for (; last < entries_.size() && entries_[last].block == block.id; ++last) {
      const Entry& e = entries_[last];
      block.is_foreign = block.is_foreign || e.is_foreign;
      if (e.is_empty()) continue;
      const bool is_new = block.low == block.high;
      block.low = is_new ? e.low : std::min(block.low, e.low);
      block.high = is_new ? e.high : std::max(block.high, e.high);
    }
    block.last = last;
    blocks_.push_back(block);
  }
  std::sort(blocks_.begin(), blocks_.end(),
            [](const Block& a, const Block& b) { return a.low < b.low; });
  index_t highest = 0;
  for (Block& block : blocks_) block.highest = highest = std::max(highest, block.high);
}

void OverlapFinder::note_places() {
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return std::tie(a.device, a.inode, a.low, a.number) <
           std::tie(b.device, b.inode, b.low, b.number);
  });
  for (std::size_t k = 0; k < places_.size(); ++k) {
    const bool is_first = k == 0 || is_in_earlier_file(places_[k - 1], places_[k]);
    places_[k].highest =
        is_first ? places_[k].high : std::max(places_[k - 1].highest, places_[k].high);
    entries_[position_[places_[k].number]].place = static_cast<std::uint32_t>(k + 1);
  }
}

}  // namespace palimpsest
