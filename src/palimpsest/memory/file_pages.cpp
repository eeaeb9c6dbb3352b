// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/file_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "palimpsest/memory/file_mappings.hpp"

namespace palimpsest {
namespace {

// A page that is read brings its neighbours that are cached: some dozens on older kernels, on newer ones
// all that the cache keeps in one piece, which is at most a huge page.
constexpr std::uintptr_t kAround = 1 << 21;

// Start and length of every mapping.
struct Mappings {
  std::shared_mutex mutex;
  std::map<std::uintptr_t, std::size_t> ranges;  // guarded by mutex
  std::atomic<std::size_t> count{0};
};

// Never destroyed: a Storage may outlive static objects.
Mappings& mappings() {
  static Mappings* const instance = new Mappings;
  return *instance;
}

struct Range {
  std::uintptr_t first = 0, last = 0;  // empty: no mapping has these bytes
};

// The mapping that holds all of the bytes; the caller holds the mutex.
Range mapping_of(const Mappings& known, std::uintptr_t first, std::size_t bytes) {
  auto next = known.ranges.upper_bound(first);
  if (next == known.ranges.begin()) return {};
  --next;
  const Range range{next->first, next->first + next->second};
  return first + bytes <= range.last ? range : Range{};
}

}  // namespace

void note_file_mapping(const void* data, std::size_t bytes) {
  Mappings& known = mappings();
  const std::unique_lock guard(known.mutex);
  known.ranges[reinterpret_cast<std::uintptr_t>(data)] = bytes;
  known.count.store(known.ranges.size(), std::memory_order_release);
}

void forget_file_mapping(const void* data) noexcept {
  Mappings& known = mappings();
  const std::unique_lock guard(known.mutex);
  known.ranges.erase(reinterpret_cast<std::uintptr_t>(data));
  known.count.store(known.ranges.size(), std::memory_order_release);
}

bool is_file_mapped(const void* data, std::size_t bytes) {
  Mappings& known = mappings();
  if (known.count.load(std::memory_order_acquire) == 0 || bytes == 0) return false;
  const std::shared_lock guard(known.mutex);
  const Range range = mapping_of(known, reinterpret_cast<std::uintptr_t>(data), bytes);
  return range.first < range.last;
}

void release_file_pages(const void* data, std::size_t bytes) noexcept {
  Mappings& known = mappings();
  if (known.count.load(std::memory_order_acquire) == 0 || bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::shared_lock guard(known.mutex);  // keeps it mapped
  const Range range = mapping_of(known, first, bytes);
  if (range.first == range.last) return;
  const std::uintptr_t from = std::max(range.first, first / kAround * kAround) / page * page;
  const std::uintptr_t to = std::min(range.last, (first + bytes + kAround - 1) / kAround * kAround);
  madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace palimpsest
