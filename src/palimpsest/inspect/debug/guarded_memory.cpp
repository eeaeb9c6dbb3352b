// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/guarded_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/inspect/debug/fault_handler.hpp"
#include "palimpsest/memory/lent_memory.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace palimpsest {
namespace {

constexpr std::size_t kGuardPages = 2;
constexpr std::size_t kPageWithoutProtection = 4096;

std::size_t page_bytes() {
  const std::size_t size = fault_handler::page_size();
  return size > 0 ? size : kPageWithoutProtection;
}

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

#if defined(__linux__)
std::byte* obtain(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}
void give_back(std::byte* memory, std::size_t bytes) { fault_handler::retire(memory, bytes); }
void allow(std::byte* memory, std::size_t bytes, bool read, bool write) {
  mprotect(memory, bytes, (read ? PROT_READ : 0) | (write ? PROT_WRITE : 0));
}
#else
std::byte* obtain(std::size_t bytes) {
  return static_cast<std::byte*>(std::aligned_alloc(kPageWithoutProtection, bytes));
}
void give_back(std::byte* memory, std::size_t) { std::free(memory); }
void allow(std::byte*, std::size_t, bool, bool) {}
#endif

void fill_guard(std::byte* from, std::byte* to) {
  std::memset(from, static_cast<int>(GuardedMemory::kZone), static_cast<std::size_t>(to - from));
}

}  // namespace

bool GuardedMemory::has_pages() { return fault_handler::page_size() > 0; }

template <class Visit>
void GuardedMemory::for_each_zone(bool guards, Visit visit) const {
  std::byte* last = memory_;
  for (const Buffer& buffer : buffers_) {
    visit(guards ? last : buffer.first_page, buffer.data);
    last = buffer.first_page + buffer.page_bytes;
    visit(buffer.data + buffer.bytes, last);
  }
  if (guards) visit(last, memory_ + total_);
}

GuardedMemory::GuardedMemory(std::span<const Request> requests, Side side, bool use_pages)
    : use_pages_(use_pages && has_pages()) {
  const std::size_t page = page_bytes(), guard = kGuardPages * page;
  total_ = guard;
  for (const Request& request : requests) {
    total_ += std::max(rounded_up(request.bytes, page), page) + guard;
  }
  memory_ = obtain(total_);
  if (memory_ == nullptr) {
    throw OutOfMemory("[DebugMode] the system has no more memory: asked " + std::to_string(total_) +
                      " bytes for private copies");
  }
  std::byte* at = memory_ + guard;
  for (const Request& request : requests) {
    Buffer buffer;
    buffer.first_page = at;
    buffer.page_bytes = std::max(rounded_up(request.bytes, page), page);
    buffer.bytes = request.bytes;
    const std::size_t slack =
        (buffer.page_bytes - request.bytes) / request.alignment * request.alignment;
    buffer.data = at + (side == Side::lower ? 0 : slack);
    at += buffer.page_bytes + guard;
    buffers_.push_back(buffer);
  }
  for_each_zone(!use_pages_, fill_guard);
}

GuardedMemory::~GuardedMemory() {
  if (slot_ >= 0) fault_handler::unwatch(slot_);
  if (!LentMemory::is_lent(memory_, total_)) {
    give_back(memory_, total_);
    return;
  }
  try {
    LentMemory::share(
        Storage::from_foreign(memory_, total_, {}, true,
                              [memory = memory_, bytes = total_] { give_back(memory, bytes); }));
  } catch (...) {
    // No memory for a note of the pages' owner: the pages stay.
  }
}

int GuardedMemory::buffer_at(const void* address) const {
  const auto* const where = static_cast<const std::byte*>(address);
  if (where < memory_ || where >= memory_ + total_) return -1;
  return static_cast<int>(fault_at(where, MemoryFault::Kind::unknown).buffer);
}

void GuardedMemory::protect_guards(bool accessible) {
  std::byte* from = memory_;
  for (const Buffer& buffer : buffers_) {
    allow(from, static_cast<std::size_t>(buffer.first_page - from), accessible, accessible);
    from = buffer.first_page + buffer.page_bytes;
  }
  allow(from, static_cast<std::size_t>(memory_ + total_ - from), accessible, accessible);
}

void GuardedMemory::start() {
  if (!use_pages_) return;
  slot_ = fault_handler::watch(memory_, memory_ + total_);
  if (slot_ < 0) {
    use_pages_ = false;
    for_each_zone(true, fill_guard);
    return;
  }
  protect_guards(false);
  for (const Buffer& buffer : buffers_) {
    if (buffer.is_read_only) allow(buffer.first_page, buffer.page_bytes, true, false);
  }
}

void GuardedMemory::stop() {
  if (slot_ < 0) return;
  allow(memory_, total_, true, true);
  for (const fault_handler::Record& record : fault_handler::unwatch(slot_)) {
    faults_.push_back(record.is_stale ? MemoryFault{0, 0, record.kind, record.address, true}
                                      : fault_at(record.address, record.kind));
  }
  slot_ = -1;
}

// Guard pages between two buffers belong to the nearer one.
MemoryFault GuardedMemory::fault_at(const std::byte* address, MemoryFault::Kind kind) const {
  const auto distance = [&](const Buffer& buffer) -> index_t {
    if (address < buffer.data) return buffer.data - address;
    return std::max<index_t>(address - (buffer.data + buffer.bytes) + 1, 0);
  };
  std::size_t nearest = 0;
  for (std::size_t b = 1; b < buffers_.size(); ++b) {
    if (distance(buffers_[b]) < distance(buffers_[nearest])) nearest = b;
  }
  return {nearest, address - buffers_[nearest].data, kind, address, false};
}

std::vector<MemoryFault> GuardedMemory::changed_zones() const {
  std::vector<MemoryFault> changed;
  std::vector<bool> seen(buffers_.size());
  const auto search = [&](const std::byte* from, const std::byte* to) {  // of one buffer
    for (;;) {
      from = std::find_if(from, to, [](std::byte b) { return b != kZone; });
      if (from == to) return;
      const MemoryFault fault = fault_at(from, MemoryFault::Kind::write);
      if (!seen[fault.buffer]) changed.push_back(fault);
      seen[fault.buffer] = true;
      ++from;
    }
  };
  for_each_zone(!use_pages_, search);
  return changed;
}

StaleWatch::StaleWatch() : slot_(fault_handler::watch(nullptr, nullptr)) {}
StaleWatch::~StaleWatch() { stop(); }

std::optional<MemoryFault> StaleWatch::stop() {
  if (slot_ < 0) return {};
  const std::vector<fault_handler::Record> records =
      fault_handler::unwatch(std::exchange(slot_, -1));
  if (records.empty()) return {};
  return MemoryFault{0, 0, records.front().kind, records.front().address, true};
}

}  // namespace palimpsest
