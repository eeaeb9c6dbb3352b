// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/device/devices.hpp"
#include "palimpsest/memory/kept_memory.hpp"
#include "palimpsest/memory/thread_allocations.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kBlocksToName = 5;

// Countdown to an injected failure; negative when none is due.
constexpr std::int64_t kNoFailure = -1;
std::atomic<std::int64_t> failure_countdown{kNoFailure};

thread_local std::uint64_t calls_of_this_thread = 0;

template <class T>
void unlink(T*& first, T* entry, T* T::*next) {
  T** at = &first;
  while (*at != entry) at = &((*at)->*next);
  *at = entry->*next;
}

}  // namespace

std::uint64_t allocations_by_this_thread() { return calls_of_this_thread; }

struct Allocator::State {
  explicit State(Device device_) : device(device_), kept(device_) {}

  const Device device;
  mutable Mutex mutex;
  AllocatorStats stats;
  MemoryScope* scopes = nullptr;
  MemoryLimit* limits = nullptr;
  std::unordered_map<const BlockHeader*, std::string> names;
  KeptMemory kept;

  RawMemory obtain(std::size_t bytes, std::uint64_t most);
  std::string describe_largest() const;
  std::string describe_device(std::size_t asked) const;
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

// Its own limits, of an accelerator.
std::string Allocator::State::describe_device(std::size_t asked) const {
  if (device.is_host()) return {};
  const DeviceFacts& facts = backend_of(device).facts();
  if (asked > facts.largest_allocation) {
    return ", largest allocation of " + device.str() + " is " +
           std::to_string(facts.largest_allocation);
  }
  const std::uint64_t used = stats.live_bytes + kept.bytes();
  const std::uint64_t free = facts.memory_bytes > used ? facts.memory_bytes - used : 0;
  return fmt::format(", free on the device: {:.1f} GiB",
                     static_cast<double>(free) / static_cast<double>(std::uint64_t{1} << 30));
}

// Takes kept memory first. Before it gets new memory, kept blocks are given back until live and
// kept bytes together stay below `most`.
RawMemory Allocator::State::obtain(std::size_t bytes, std::uint64_t most) {
  if (const RawMemory raw = kept.take(bytes); raw.data != nullptr) return raw;
  const std::uint64_t after = stats.live_bytes + bytes;
  kept.trim(most > after ? most - after : 0);
  const RawMemory raw = obtain_memory(bytes, device);
  if (raw.data != nullptr || kept.bytes() == 0) return raw;
  kept.trim(0);
  return obtain_memory(bytes, device);
}

Allocator::Allocator(Device device) : state_(new State(device)) {}

// Allocators of accelerators are made when they are first asked for.
Allocator& Allocator::of_accelerator(Device device) {
  struct Table {
    Mutex mutex;
    std::map<Device, Allocator*> made;
  };
  Table& table = immortal([] { return Table(); });
  backend_of(device);  // DeviceError
  const std::lock_guard lock(table.mutex);
  Allocator*& allocator = table.made[device];
  if (allocator == nullptr) allocator = new Allocator(device);
  return *allocator;
}

Allocator& Allocator::of(Device device) {
  if (!device.is_host()) return of_accelerator(device);
  // Never destroyed: storages of static life time are given back later than any destructor here.
  const auto& allocators = immortal([] {
    std::array<Allocator*, kMaxHostSpaces> made;
    for (int i = 0; i < kMaxHostSpaces; ++i) {
      made[static_cast<std::size_t>(i)] =
          new Allocator(Device{DeviceType::cpu, static_cast<std::int16_t>(i)});
    }
    return made;
  });
  if (device.index < 0 || device.index >= kMaxHostSpaces) {
    throw DeviceError("[Allocator] no such memory space in this build: got " + device.str() +
                      ", expected cpu:0 .. cpu:" + std::to_string(kMaxHostSpaces - 1));
  }
  return *allocators[static_cast<std::size_t>(device.index)];
}

Block Allocator::allocate(std::size_t bytes, std::string_view name, std::uint8_t lead) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const auto fail = [&](const std::string& why) {
    return OutOfMemory(
        "[Allocator " + state.device.str() + "] " + why + ": asked " + std::to_string(bytes) +
        " bytes" + (name.empty() ? "" : " for " + std::string(name)) + ", live " +
        std::to_string(state.stats.live_bytes) + state.describe_largest() +
        state.describe_device(bytes) + ". Try a smaller problem, or free something first.");
  };
  if (failure_countdown.load(std::memory_order_relaxed) > kNoFailure &&
      failure_countdown.fetch_sub(1, std::memory_order_relaxed) == 0) {
    throw fail("injected failure");
  }
  // The process never holds more than it once needed, nor more than a limit allows.
  std::uint64_t most = state.stats.peak_bytes;
  for (const MemoryLimit* limit = state.limits; limit != nullptr; limit = limit->next_) {
    most = std::min(most, limit->bytes_);
    if (bytes > limit->bytes_ || state.stats.live_bytes > limit->bytes_ - bytes) {
      state.kept.trim(0);
      throw fail("the limit of " + std::to_string(limit->bytes_) + " bytes is exceeded");
    }
  }
  const RawMemory raw = bytes > kMostBytes ? RawMemory{} : state.obtain(bytes + lead, most);
  if (raw.data == nullptr) throw fail("the system has no more memory");
  BlockHeader* header = nullptr;
  try {
    // The host cannot write in front of data on an accelerator.
    header = state.device.is_host()
                 ? new (raw.data - sizeof(BlockHeader))
                       BlockHeader(raw.data + lead, bytes, state.device, BlockKind::owned)
                 : new BlockHeader(raw.data + lead, bytes, state.device, BlockKind::owned);
    if (!name.empty()) state.names.emplace(header, name);
  } catch (...) {
    if (!state.device.is_host()) delete header;
    give_back_memory(raw, state.device);
    throw;
  }
  header->free = free_block;
  header->owner = this;
  header->lead = lead;
  header->mapped_bytes = raw.mapped_bytes;
  header->is_named = !name.empty();
  AllocatorStats& stats = state.stats;
  stats.live_bytes += bytes;
  stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes);
  stats.total_bytes += bytes;
  ++stats.calls;
  ++calls_of_this_thread;
  for (MemoryScope* scope = state.scopes; scope != nullptr; scope = scope->next_) {
    scope->highest_live_ = std::max(scope->highest_live_, stats.live_bytes);
  }
  return Block(header);
}

void Allocator::free_block(BlockHeader* header) noexcept {
  State& state = *static_cast<Allocator*>(header->owner)->state_;
  const RawMemory raw{header->data - header->lead, header->mapped_bytes};
  const std::size_t bytes = header->bytes, with_lead = bytes + header->lead;
  {
    const std::lock_guard lock(state.mutex);
    state.stats.live_bytes -= bytes;
    if (header->is_named) state.names.erase(header);
    if (state.device.is_host()) {
      header->~BlockHeader();
    } else {
      delete header;
    }
    if (state.kept.keep(raw, with_lead)) return;
  }
  give_back_memory(raw, state.device);
}

std::uint64_t Allocator::kept_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->kept.bytes();
}

void Allocator::trim(std::uint64_t keep) {
  const std::lock_guard lock(state_->mutex);
  state_->kept.trim(keep);
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
