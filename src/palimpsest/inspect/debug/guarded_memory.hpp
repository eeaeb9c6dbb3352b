// SPDX-License-Identifier: Apache-2.0
// Internal: memory that detects forbidden accesses.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// The end of its pages that a buffer touches.
enum class Side { lower, upper };

/// An access that was not allowed.
struct MemoryFault {
  enum class Kind { read, write, unknown };
  std::size_t buffer = 0;
  /// From the start of the buffer; negative before it, at least its size behind it.
  index_t offset = 0;
  Kind kind = Kind::unknown;
  const void* address = nullptr;
  /// An address of other memory, which has been given back. Then there is no buffer.
  bool is_stale = false;
};

/// Buffers on pages of their own, with inaccessible pages before and behind each.
///
/// Between start() and stop() a handler of SIGSEGV records each access to such a page, and each
/// write to a read-only buffer; then the page is opened and the access goes on. Accesses of this
/// thread to addresses without memory are recorded in the same way: such as those of buffers of an
/// earlier object of this class, which stay taken for a while. Faults elsewhere go to the handler
/// that was there before, which returns after the last use of this one. Without page protection
/// only changed bytes around the buffers are found.
///
/// Invariants
///  1. A page belongs to at most one buffer, so that each buffer can be read-only by itself.
///  2. Bytes of a buffer's pages outside of the buffer hold kZone until they are written.
///  3. The handler touches static memory only; no lock, no allocation.
/// Threads  any thread may fault; members are for one thread
class GuardedMemory {
 public:
  static constexpr std::byte kZone{0xC3};
  /// True if this system has page protection.
  static bool has_pages();

  struct Request {
    std::size_t bytes = 0;
    std::size_t alignment = 1;  // a power of two, at most 64
  };
  GuardedMemory(std::span<const Request> requests, Side side, bool use_pages);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data(std::size_t buffer) const { return buffers_[buffer].data; }
  std::size_t bytes(std::size_t buffer) const { return buffers_[buffer].bytes; }
  /// The buffer in which an address lies, its guard pages included; -1: none.
  int buffer_at(const void* address) const;

  void set_read_only(std::size_t buffer) { buffers_[buffer].is_read_only = true; }
  /// From here on accesses are watched.
  void start();
  /// Back to memory that may be read and written, guard pages excepted.
  void stop();
  /// The recorded faults, in their order; at most a few dozen.
  std::vector<MemoryFault> faults() const { return faults_; }
  /// Bytes around buffers that were written: one entry per buffer, the first such byte.
  std::vector<MemoryFault> changed_zones() const;

 private:
  struct Buffer {
    std::byte* first_page = nullptr;  // behind the guard pages
    std::size_t page_bytes = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool is_read_only = false;
  };
  // Calls visit(from, to) for the bytes outside of buffers, with or without the guard pages.
  template <class Visit>
  void for_each_zone(bool guards, Visit visit) const;
  void protect_guards(bool accessible);
  MemoryFault fault_at(const std::byte* address, MemoryFault::Kind kind) const;

  std::byte* memory_ = nullptr;
  std::size_t total_ = 0;
  bool use_pages_;
  int slot_ = -1;  // of the table that the handler reads, while watching
  std::vector<Buffer> buffers_;
  std::vector<MemoryFault> faults_;
};

/// Finds accesses of this thread to addresses without memory, while it lives; see GuardedMemory.
class StaleWatch {
 public:
  StaleWatch();
  ~StaleWatch();
  StaleWatch(const StaleWatch&) = delete;
  StaleWatch& operator=(const StaleWatch&) = delete;
  /// Ends it. The first one, if any.
  std::optional<MemoryFault> stop();

 private:
  int slot_;
};

}  // namespace palimpsest
