// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/allocator.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "palimpsest/base/error.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kHugeFrom = std::size_t{4} << 20;
// Beyond this no request can be met, and sums of header, rounding and request cannot overflow.
constexpr std::size_t kMostBytes = std::size_t{1} << 56;
constexpr std::size_t kBlocksToName = 5;

static_assert(sizeof(BlockHeader) == kAlignment, "the data follow the header without a gap");

constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Countdown to an injected failure; negative when none is due.
constexpr std::int64_t kNoFailure = -1;
std::atomic<std::int64_t> failure_countdown{kNoFailure};

// Memory as it comes from the system: where the data lie and what must be given back.
struct Raw {
  std::byte* data = nullptr;
  std::size_t mapped_bytes = 0;
};

Raw obtain_from_heap(std::size_t bytes) {
  void* const memory = std::aligned_alloc(kAlignment, kAlignment + round_up(bytes, kAlignment));
  return {memory == nullptr ? nullptr : static_cast<std::byte*>(memory) + kAlignment, 0};
}

// A page for the header, then the data at a huge-page boundary, so that the header does not cost a
// huge page of its own. What the mapping has too much on either side is given back at once.
Raw obtain_mapping(std::size_t bytes) {
  const std::size_t wanted = kPage + round_up(bytes, kPage);
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
  madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return {data, wanted};
}

Raw obtain(std::size_t bytes) {
  return bytes < kHugeFrom ? obtain_from_heap(bytes) : obtain_mapping(bytes);
}

void give_back(std::byte* data, std::size_t mapped_bytes) noexcept {
  if (mapped_bytes > 0) {
    munmap(data - kPage, mapped_bytes);
  } else {
    std::free(data - kAlignment);
  }
}

template <class T>
void unlink(T*& first, T* entry, T* T::*next) {
  T** at = &first;
  while (*at != entry) at = &((*at)->*next);
  *at = entry->*next;
}

}  // namespace

struct Allocator::State {
  explicit State(Device device_) : device(device_) {}

  const Device device;
  mutable std::mutex mutex;
  AllocatorStats stats;
  MemoryScope* scopes = nullptr;
  MemoryLimit* limits = nullptr;
  std::unordered_map<const BlockHeader*, std::string> names;

  std::string describe_largest() const;
};

std::string Allocator::State::describe_largest() const {
  std::vector<std::pair<std::size_t, std::string_view>> blocks;
  for (const auto& [header, name] : names) blocks.emplace_back(header->bytes, name);
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (blocks.size() > kBlocksToName) blocks.resize(kBlocksToName);
  if (blocks.empty()) return ", no named blocks";
  std::string text = ", largest named blocks:";
  for (const auto& [bytes, name] : blocks) {
    text +=
        (text.back() == ':' ? " " : ", ") + std::string(name) + " (" + std::to_string(bytes) + ")";
  }
  return text;
}

Allocator::Allocator(Device device) : state_(new State(device)) {}

Allocator& Allocator::of(Device device) {
  // Never destroyed: storages of static life time are given back later than any destructor here.
  static auto* const allocators = [] {
    auto* const made = new std::array<Allocator*, kMaxHostSpaces>;
    for (int i = 0; i < kMaxHostSpaces; ++i) {
      (*made)[static_cast<std::size_t>(i)] =
          new Allocator(Device{DeviceType::cpu, static_cast<std::int16_t>(i)});
    }
    return made;
  }();
  if (device.type != DeviceType::cpu || device.index < 0 || device.index >= kMaxHostSpaces) {
    throw DeviceError("[Allocator] no such memory space in this build: got " + device.str() +
                      ", expected cpu:0 .. cpu:" + std::to_string(kMaxHostSpaces - 1));
  }
  return *(*allocators)[static_cast<std::size_t>(device.index)];
}

Block Allocator::allocate(std::size_t bytes, std::string_view name) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const auto fail = [&](const std::string& why) {
    return OutOfMemory("[Allocator " + state.device.str() + "] " + why + ": asked " +
                       std::to_string(bytes) + " bytes" +
                       (name.empty() ? "" : " for " + std::string(name)) + ", live " +
                       std::to_string(state.stats.live_bytes) + state.describe_largest() +
                       ". Try a smaller problem, or free something first.");
  };
  if (failure_countdown.load(std::memory_order_relaxed) > kNoFailure &&
      failure_countdown.fetch_sub(1, std::memory_order_relaxed) == 0) {
    throw fail("injected failure");
  }
  for (const MemoryLimit* limit = state.limits; limit != nullptr; limit = limit->next_) {
    if (bytes > limit->bytes_ || state.stats.live_bytes > limit->bytes_ - bytes) {
      throw fail("the limit of " + std::to_string(limit->bytes_) + " bytes is exceeded");
    }
  }
  const Raw raw = bytes <= kMostBytes ? obtain(bytes) : Raw{};
  if (raw.data == nullptr) throw fail("the system has no more memory");
  auto* const header =
      new (raw.data - kAlignment) BlockHeader(raw.data, bytes, state.device, BlockKind::owned);
  header->free = free_block;
  header->owner = this;
  header->mapped_bytes = raw.mapped_bytes;
  if (!name.empty()) {
    try {
      state.names.emplace(header, name);
    } catch (...) {
      give_back(raw.data, raw.mapped_bytes);
      throw;
    }
    header->is_named = true;
  }
  AllocatorStats& stats = state.stats;
  stats.live_bytes += bytes;
  stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes);
  stats.total_bytes += bytes;
  ++stats.calls;
  for (MemoryScope* scope = state.scopes; scope != nullptr; scope = scope->next_) {
    scope->highest_live_ = std::max(scope->highest_live_, stats.live_bytes);
  }
  return Block(header);
}

void Allocator::free_block(BlockHeader* header) noexcept {
  State& state = *static_cast<Allocator*>(header->owner)->state_;
  {
    const std::lock_guard lock(state.mutex);
    state.stats.live_bytes -= header->bytes;
    if (header->is_named) state.names.erase(header);
  }
  std::byte* const data = header->data;
  const std::size_t mapped_bytes = header->mapped_bytes;
  header->~BlockHeader();
  give_back(data, mapped_bytes);
}

AllocatorStats Allocator::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

Device Allocator::device() const { return state_->device; }

MemoryScope::MemoryScope(Device device) : state_(*Allocator::of(device).state_) {
  const std::lock_guard lock(state_.mutex);
  start_ = state_.stats;
  highest_live_ = start_.live_bytes;
  next_ = std::exchange(state_.scopes, this);
}

MemoryScope::~MemoryScope() {
  const std::lock_guard lock(state_.mutex);
  unlink(state_.scopes, this, &MemoryScope::next_);
}

std::uint64_t MemoryScope::peak_bytes() const {
  const std::lock_guard lock(state_.mutex);
  return highest_live_ - start_.live_bytes;
}

std::uint64_t MemoryScope::allocated_bytes() const {
  const std::lock_guard lock(state_.mutex);
  return state_.stats.total_bytes - start_.total_bytes;
}

std::uint64_t MemoryScope::calls() const {
  const std::lock_guard lock(state_.mutex);
  return state_.stats.calls - start_.calls;
}

std::int64_t MemoryScope::live_bytes() const {
  const std::lock_guard lock(state_.mutex);
  return static_cast<std::int64_t>(state_.stats.live_bytes) -
         static_cast<std::int64_t>(start_.live_bytes);
}

MemoryLimit::MemoryLimit(Device device, std::uint64_t bytes)
    : state_(*Allocator::of(device).state_), bytes_(bytes) {
  const std::lock_guard lock(state_.mutex);
  next_ = std::exchange(state_.limits, this);
}

MemoryLimit::~MemoryLimit() {
  const std::lock_guard lock(state_.mutex);
  unlink(state_.limits, this, &MemoryLimit::next_);
}

FailingAllocator::FailingAllocator(std::uint64_t n) {
  failure_countdown.store(static_cast<std::int64_t>(n), std::memory_order_relaxed);
}

FailingAllocator::~FailingAllocator() {
  failure_countdown.store(kNoFailure, std::memory_order_relaxed);
}

bool FailingAllocator::has_failed() const {
  return failure_countdown.load(std::memory_order_relaxed) < 0;
}

}  // namespace palimpsest
