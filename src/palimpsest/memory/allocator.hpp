// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/device/device.hpp"
#include "palimpsest/memory/block.hpp"

namespace PALIMPSEST_API palimpsest {

/// Number of host memory spaces: cpu:0 .. cpu:63.
inline constexpr int kMaxHostSpaces = 64;

/// Counters of an allocator. Bytes are requested bytes, without headers and rounding, so the
/// numbers equal those of a memory plan.
struct AllocatorStats {
  std::uint64_t live_bytes = 0;   ///< given out and not yet given back
  std::uint64_t peak_bytes = 0;   ///< the largest live_bytes ever
  std::uint64_t total_bytes = 0;  ///< sum over all calls
  std::uint64_t calls = 0;        ///< successful allocations
};

/// The source of the memory of one device.
///
/// Threads  every member may be called concurrently
class Allocator {
 public:
  /// The allocator of a device, alive until the process ends. DeviceError if there is none.
  static Allocator& of(Device device);

  /// Uninitialized bytes, aligned to 64; from 4 MiB up to 2 MiB, and advised as huge pages.
  /// A block with a name is listed by name when memory runs out; a name costs some time. With a
  /// `lead`, less than 64, the data begin so many bytes behind a place that is aligned.
  ///
  /// Errors   OutOfMemory: the system has no more, or a MemoryLimit forbids it
  Block allocate(std::size_t bytes, std::string_view name = {}, std::uint8_t lead = 0);
  AllocatorStats stats() const;
  /// Freed memory that is kept for the next allocation of its size class: at most 1 GiB, and never
  /// so much that an allocation lifts live and kept bytes together above the peak of the live ones
  /// or above a MemoryLimit.
  std::uint64_t kept_bytes() const;
  /// Gives kept memory back to the system until at most `keep` bytes of it are left.
  void trim(std::uint64_t keep = 0);
  Device device() const;

  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

 private:
  friend class MemoryScope;
  friend class MemoryLimit;
  struct State;

  explicit Allocator(Device device);
  static Allocator& of_accelerator(Device device);
  ~Allocator() = delete;
  static void free_block(BlockHeader* header) noexcept;

  State* const state_;
};

/// Measures the allocations on one device during its life, by all threads. Scopes nest freely.
class MemoryScope {
 public:
  explicit MemoryScope(Device device = {});
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  /// Largest number of live bytes since the start, minus the live bytes at the start; at least 0.
  std::uint64_t peak_bytes() const;
  /// Sum of all allocations since the start.
  std::uint64_t allocated_bytes() const;
  /// Number of allocations since the start.
  std::uint64_t calls() const;
  /// Live bytes now minus those at the start; negative when more was freed.
  std::int64_t live_bytes() const;

 private:
  friend class Allocator;

  Allocator::State& state_;
  AllocatorStats start_;
  std::uint64_t highest_live_;
  MemoryScope* next_ = nullptr;
};

/// Forbids, while it lives, that the live bytes of a device exceed a bound. Of several limits the
/// lowest counts. An allocation beyond it throws OutOfMemory and changes nothing.
class MemoryLimit {
 public:
  MemoryLimit(Device device, std::uint64_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  friend class Allocator;

  Allocator::State& state_;
  std::uint64_t bytes_;
  MemoryLimit* next_ = nullptr;
};

/// A failure for tests: while it lives, the n-th allocation from its start, counted from 0 over all
/// devices and threads, throws OutOfMemory. Do not nest.
class FailingAllocator {
 public:
  explicit FailingAllocator(std::uint64_t n);
  ~FailingAllocator();
  FailingAllocator(const FailingAllocator&) = delete;
  FailingAllocator& operator=(const FailingAllocator&) = delete;

  /// True if the allocation that was to fail has come.
  bool has_failed() const;
};

}  // namespace palimpsest
