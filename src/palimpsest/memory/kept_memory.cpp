// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/kept_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "palimpsest/base/system/system_calls.hpp"
#include "palimpsest/device/devices.hpp"
#include "palimpsest/memory/block.hpp"
#include "palimpsest/memory/held_memory.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) \
  (static_cast<void>(address), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) \
  (static_cast<void>(address), static_cast<void>(bytes))
#endif

namespace palimpsest {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kHugeFrom = std::size_t{4} << 20;
constexpr std::uint64_t kMostKeptBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMostKeptEntries = 64;

static_assert(sizeof(BlockHeader) == kAlignment, "the data follow the header without a gap");

constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

RawMemory obtain_from_heap(std::size_t bytes) {
  void* const memory = std::aligned_alloc(kAlignment, kAlignment + round_up(bytes, kAlignment));
  return {memory == nullptr ? nullptr : static_cast<std::byte*>(memory) + kAlignment, 0};
}

// A page for the header, then the data in whole pages, from a huge-page boundary on: so the
// header does not cost a huge page of its own. The surplus of the mapping on both sides is given
// back at once. At most `used` bytes will be touched: the last, partly used huge page consists of
// small pages, so that no unused bytes are resident.
RawMemory obtain_mapping(std::size_t bytes, std::size_t used) {
  const std::size_t wanted = kPage + bytes;
  const std::size_t reserved = wanted + kHugePage;
  void* const memory =
      mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  auto* const first = static_cast<std::byte*>(memory);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::size_t lead = round_up(address + kPage, kHugePage) - kPage - address;
  if (lead > 0) munmap(first, lead);
  const std::size_t tail = reserved - lead - wanted;
  if (tail > 0) munmap(first + lead + wanted, tail);
  std::byte* const data = first + lead + kPage;
#ifdef MADV_HUGEPAGE
  const std::size_t huge = used / kHugePage * kHugePage;
  madvise(data, huge, MADV_HUGEPAGE);
  madvise(data + huge, bytes - huge, MADV_NOHUGEPAGE);
#endif
  return {data, wanted};
}

}  // namespace

std::size_t class_bytes(std::size_t bytes) {
  if (bytes < kKeepFrom) return bytes;
  // Eight classes between powers of two.
  const int shift = std::bit_width(bytes) - 4;
  return round_up(bytes, std::size_t{1} << shift);
}

RawMemory obtain_memory(std::size_t bytes, Device device) {
  const std::size_t size = class_bytes(bytes);
  if (!device.is_host()) {
    const std::size_t obtained = std::max<std::size_t>(size, 1);
    return {backend_of(device).obtain(obtained), obtained};
  }
  return size < kHugeFrom ? obtain_from_heap(size) : obtain_mapping(size, bytes);
}

static std::span<const std::byte> bytes_of(const RawMemory& raw) noexcept {
  const std::size_t bytes =
      raw.mapped_bytes > 0 ? raw.mapped_bytes - kPage
                           : system_detail::allocated_bytes(raw.data - kAlignment) - kAlignment;
  return {raw.data, bytes};
}

void give_back_memory(const RawMemory& raw, Device device) noexcept {
  if (!device.is_host()) {
    try {
      backend_of(device).give_back(raw.data, raw.mapped_bytes);
    } catch (...) {  // a child of fork() has no devices
    }
    return;
  }
  if (is_anything_held() && is_given_back_later(bytes_of(raw), raw)) return;
  if (raw.mapped_bytes > 0) {
    munmap(raw.data - kPage, raw.mapped_bytes);
  } else {
    std::free(raw.data - kAlignment);
  }
}

void KeptMemory::unpoison(const RawMemory& raw, std::size_t size) const {
  if (device_.is_host()) ASAN_UNPOISON_MEMORY_REGION(raw.data - kAlignment, kAlignment + size);
}

RawMemory KeptMemory::take(std::size_t bytes) {
  if (bytes < kKeepFrom) return {};
  const std::size_t size = class_bytes(bytes);
  for (std::size_t k = entries_.size(); k-- > 0;) {
    if (entries_[k].size != size) continue;
    const RawMemory raw = entries_[k].raw;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(k));
    bytes_ -= size;
    unpoison(raw, size);
    return raw;
  }
  return {};
}

bool KeptMemory::keep(const RawMemory& raw, std::size_t bytes) noexcept {
  const std::size_t size = class_bytes(bytes);
  if (bytes < kKeepFrom || size > kMostKeptBytes) return false;
  if (device_.is_host() && is_anything_held() && is_held(bytes_of(raw))) return false;
  trim(kMostKeptBytes - size);
  if (entries_.size() == kMostKeptEntries) trim(bytes_ - 1);
  try {
    entries_.push_back({raw, size});
  } catch (...) {
    return false;
  }
  bytes_ += size;
  if (device_.is_host()) ASAN_POISON_MEMORY_REGION(raw.data - kAlignment, kAlignment + size);
  return true;
}

void KeptMemory::trim(std::uint64_t bytes) noexcept {
  while (bytes_ > bytes) {
    const Entry entry = entries_.front();
    entries_.pop_front();
    bytes_ -= entry.size;
    unpoison(entry.raw, entry.size);
    give_back_memory(entry.raw, device_);
  }
}

}  // namespace palimpsest
