// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "palimpsest/device/device.hpp"

// Source of the memory of blocks. Internal to the allocators.
namespace palimpsest {

/// Beyond this no request can be met, and sums of header, rounding and request cannot overflow.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 56;
/// From here on freed memory is kept; below, the heap of the system is quick enough.
inline constexpr std::size_t kKeepFrom = std::size_t{32} << 10;

/// Room for a block: where its data lie, with the room for the header in front.
struct RawMemory {
  std::byte* data = nullptr;
  std::size_t mapped_bytes = 0;  ///< length of the mapping, 0 if it came from the heap; on an
                                 ///< accelerator the bytes obtained
};

/// The bytes that a request of this size really gets: few enough sizes that freed memory fits the
/// next request, at most an eighth more than asked for.
std::size_t class_bytes(std::size_t bytes);
/// Memory of a device; data is null if it has none. For the host, room for a header lies in front.
RawMemory obtain_memory(std::size_t bytes, Device device = {});
void give_back_memory(const RawMemory& raw, Device device = {}) noexcept;

/// Freed memory of a device, kept for requests of the same size class. Memory of an accelerator can
/// be used again at once: its reuse is enqueued behind the last use. Not thread-safe.
class KeptMemory {
 public:
  explicit KeptMemory(Device device = {}) : device_(device) {}
  /// Most recently kept first; data is null if there is none of this class.
  RawMemory take(std::size_t bytes);
  /// Memory that a request of `bytes` had; false if it is not to be kept.
  bool keep(const RawMemory& raw, std::size_t bytes) noexcept;
  /// Gives back the oldest until at most `bytes` are left.
  void trim(std::uint64_t bytes) noexcept;
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    RawMemory raw;
    std::size_t size;  // of its class
  };
  void unpoison(const RawMemory& raw, std::size_t size) const;

  Device device_;
  std::deque<Entry> entries_;  // oldest first
  std::uint64_t bytes_ = 0;
};

}  // namespace palimpsest
