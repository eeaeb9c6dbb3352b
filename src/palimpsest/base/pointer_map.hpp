// SPDX-License-Identifier: Apache-2.0
// Internal: sets and maps whose keys are addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace palimpsest {
namespace detail {

/// A list of entries with one address each, no two the same. A short list is searched through; a
/// longer one has an index, an open hash table of positions.
///
/// Order  that of arrival, until an entry is erased: then the last takes its place. So the order of
///        visits depends on the program alone, not on addresses
/// Cost   a lookup: O(1), in one or two places of memory. An empty table allocates nothing
template <class K, class Entry>
class PointerTable {
 public:
  using iterator = typename std::vector<Entry>::iterator;
  using const_iterator = typename std::vector<Entry>::const_iterator;

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  bool contains(const K* key) const { return position_of(key) != kNone; }

  bool erase(const K* key) {
    const std::size_t position = position_of(key);
    if (position == kNone) return false;
    const std::size_t last = entries_.size() - 1;
    if (index_) {
      vacate(place_of(key));
      if (position != last) {
        index_[place_of(key_of(entries_[last]))] = static_cast<std::uint32_t>(position + 1);
      }
    }
    if (position != last) entries_[position] = std::move(entries_[last]);
    entries_.pop_back();
    return true;
  }

  void clear() {
    entries_.clear();
    index_.reset();
    mask_ = 0;
  }

  void reserve(std::size_t n) {
    entries_.reserve(n);
    if (n > kShort && n > room()) make_index(n);
  }

 protected:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::size_t position_of(const K* key) const {
    if (index_) {
      const std::uint32_t found = index_[place_of(key)];
      return found == 0 ? kNone : found - 1;
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (key_of(entries_[i]) == key) return i;
    }
    return kNone;
  }

  /// Adds an entry with a new key.
  Entry& add(Entry entry) {
    entries_.push_back(std::move(entry));
    if (entries_.size() > kShort && entries_.size() > room()) {
      make_index(2 * entries_.size());
    } else if (index_) {
      index_[place_of(key_of(entries_.back()))] = static_cast<std::uint32_t>(entries_.size());
    }
    return entries_.back();
  }

  std::vector<Entry> entries_;

 private:
  static constexpr std::size_t kShort = 8;

  static const K* key_of(const Entry& entry) {
    if constexpr (std::is_pointer_v<Entry>) {
      return entry;
    } else {
      return entry.first;
    }
  }

  // Entries for which the index is big enough: it is at most half full.
  std::size_t room() const { return index_ ? (std::size_t{mask_} + 1) / 2 : 0; }

  std::size_t home_of(const K* key) const {
    const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(key));
    return static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15u) >> 32) & mask_;
  }

  // The slot of the index that holds the key, or the free slot where it belongs.
  std::size_t place_of(const K* key) const {
    std::size_t place = home_of(key);
    while (index_[place] != 0 && key_of(entries_[index_[place] - 1]) != key) {
      place = (place + 1) & mask_;
    }
    return place;
  }

  // Moves up the entries that the erased one had displaced.
  void vacate(std::size_t hole) {
    for (std::size_t next = (hole + 1) & mask_; index_[next] != 0; next = (next + 1) & mask_) {
      const std::size_t home = home_of(key_of(entries_[index_[next] - 1]));
      if (((next - home) & mask_) < ((next - hole) & mask_)) continue;
      index_[hole] = index_[next];
      hole = next;
    }
    index_[hole] = 0;
  }

  void make_index(std::size_t n) {
    std::size_t places = 4 * kShort;
    while (places < 2 * n) places *= 2;
    index_ = std::make_unique<std::uint32_t[]>(places);
    mask_ = static_cast<std::uint32_t>(places - 1);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      index_[place_of(key_of(entries_[i]))] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::unique_ptr<std::uint32_t[]> index_;  // position + 1; 0: nothing here
  std::uint32_t mask_ = 0;
};

}  // namespace detail

/// A set of addresses; see PointerTable for its order and cost.
template <class K>
class PointerSet : public detail::PointerTable<K, K*> {
 public:
  /// False: it was there.
  bool insert(K* key) {
    if (this->contains(key)) return false;
    this->add(key);
    return true;
  }
};

/// A map from addresses; see PointerTable for its order and cost. Adding and erasing move values.
template <class K, class V>
class PointerMap : public detail::PointerTable<K, std::pair<K*, V>> {
 public:
  using Base = detail::PointerTable<K, std::pair<K*, V>>;

  /// Null if the key is absent.
  V* find(const K* key) {
    const std::size_t position = this->position_of(key);
    return position == Base::kNone ? nullptr : &this->entries_[position].second;
  }
  const V* find(const K* key) const { return const_cast<PointerMap*>(this)->find(key); }

  /// The value of the key, and whether it is new. An old one stays as it is.
  std::pair<V*, bool> try_emplace(K* key, V value = {}) {
    if (V* const known = find(key)) return {known, false};
    return {&this->add({key, std::move(value)}).second, true};
  }
  V& operator[](K* key) { return *try_emplace(key).first; }
};

}  // namespace palimpsest
