// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/file_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/memory/file_mappings.hpp"

namespace palimpsest {
namespace {

// A page that is read brings its neighbours that are cached: some dozens on older kernels, on newer
// ones all that the cache keeps in one piece, which is at most a huge page.
constexpr std::uintptr_t kAround = 1 << 21;

struct Mapping {
  std::size_t bytes;
  MappedPlace first;
  bool is_file;
};

// Every mapping by its start.
struct Mappings {
  SharedMutex mutex;
  std::map<std::uintptr_t, Mapping> ranges;  // guarded by mutex
  std::atomic<std::size_t> count{0};
};

// Never destroyed: a Storage may outlive static objects.
Mappings& mappings() {
  return immortal([] { return Mappings(); });
}

// The mapping that holds all of the bytes, or the end; the caller holds the mutex.
auto mapping_of(const Mappings& known, std::uintptr_t first, std::size_t bytes) {
  const auto next = known.ranges.upper_bound(first);
  if (next == known.ranges.begin()) return known.ranges.end();
  const auto found = std::prev(next);
  return first + bytes <= found->first + found->second.bytes ? found : known.ranges.end();
}

}  // namespace

FileMapping::FileMapping(void* mapped, std::size_t bytes)
    : data_(mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped)), bytes_(bytes) {}

FileMapping::FileMapping(int descriptor, std::size_t bytes, const MappedPlace& first, bool is_file)
    : FileMapping(bytes == 0 ? nullptr
                             : mmap(nullptr, bytes, is_file ? PROT_READ : PROT_READ | PROT_WRITE,
                                    is_file ? MAP_PRIVATE : MAP_SHARED, descriptor, first.offset),
                  bytes) {
  if (data_ == nullptr) return;
  Mappings& known = mappings();
  const std::unique_lock guard(known.mutex);
  known.ranges[reinterpret_cast<std::uintptr_t>(data_)] = {bytes, first, is_file};
  known.count.store(known.ranges.size(), std::memory_order_release);
}

FileMapping::~FileMapping() {
  if (data_ == nullptr) return;
  {
    Mappings& known = mappings();
    const std::unique_lock guard(known.mutex);
    known.ranges.erase(reinterpret_cast<std::uintptr_t>(data_));
    known.count.store(known.ranges.size(), std::memory_order_release);
  }
  munmap(data_, bytes_);
}

std::optional<MappedPlace> mapped_place(const void* data, std::size_t bytes) {
  Mappings& known = mappings();
  if (known.count.load(std::memory_order_acquire) == 0 || bytes == 0) return std::nullopt;
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  const std::shared_lock guard(known.mutex);
  const auto found = mapping_of(known, first, bytes);
  if (found == known.ranges.end()) return std::nullopt;
  MappedPlace place = found->second.first;
  place.offset += static_cast<std::int64_t>(first - found->first);
  return place;
}

bool is_file_mapped(const void* data, std::size_t bytes) {
  Mappings& known = mappings();
  if (known.count.load(std::memory_order_acquire) == 0 || bytes == 0) return false;
  const std::shared_lock guard(known.mutex);
  const auto found = mapping_of(known, reinterpret_cast<std::uintptr_t>(data), bytes);
  return found != known.ranges.end() && found->second.is_file;
}

void release_file_pages(const void* data, std::size_t bytes) noexcept {
  Mappings& known = mappings();
  if (known.count.load(std::memory_order_acquire) == 0 || bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::shared_lock guard(known.mutex);  // keeps it mapped
  const auto found = mapping_of(known, first, bytes);
  if (found == known.ranges.end() || !found->second.is_file) return;
  const std::uintptr_t last = found->first + found->second.bytes;
  const std::uintptr_t from = std::max(found->first, first / kAround * kAround) / page * page;
  const std::uintptr_t to = std::min(last, (first + bytes + kAround - 1) / kAround * kAround);
  madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace palimpsest
