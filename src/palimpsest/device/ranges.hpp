// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>

#include "palimpsest/base/fork.hpp"

namespace palimpsest {

/// Ranges of addresses with a value each; they do not overlap. Threads may use them together.
template <class Value>
class Ranges {
 public:
  struct Found {
    Value value;
    std::byte* first;
    std::size_t offset;  ///< of the address that was looked for
  };

  /// False if there is no memory for it.
  bool add(std::byte* first, std::size_t bytes, Value value) noexcept {
    try {
      const std::unique_lock guard(mutex_);
      ranges_.emplace(first, Range{bytes, value});
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  /// Removes a range; its value, unless no such range is there.
  std::optional<Value> take(std::byte* first, std::size_t bytes) noexcept {
    const std::unique_lock guard(mutex_);
    const auto found = ranges_.find(first);
    if (found == ranges_.end() || found->second.bytes != bytes) return std::nullopt;
    const Value value = found->second.value;
    ranges_.erase(found);
    return value;
  }
  /// The range with all of these bytes. The end of a range is a place of 0 bytes.
  std::optional<Found> find(const void* address, std::size_t bytes) const noexcept {
    std::byte* const at = static_cast<std::byte*>(const_cast<void*>(address));
    const std::shared_lock guard(mutex_);
    auto found = ranges_.upper_bound(at);
    if (found == ranges_.begin()) return std::nullopt;
    --found;
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(found->first);
    const Range& range = found->second;
    if (offset > range.bytes || bytes > range.bytes - offset) return std::nullopt;
    return Found{range.value, found->first, offset};
  }
  /// Calls visit(first, bytes, value) for all.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::shared_lock guard(mutex_);
    for (const auto& [first, range] : ranges_) visit(first, range.bytes, range.value);
  }

 private:
  struct Range {
    std::size_t bytes;
    Value value;
  };
  mutable SharedMutex mutex_;
  std::map<std::byte*, Range> ranges_;
};

}  // namespace palimpsest
