// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/held_memory.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"

namespace palimpsest {
namespace {

using Spans = std::vector<std::span<const std::byte>>;

struct Freed {
  std::span<const std::byte> bytes;
  RawMemory raw;
};

constinit std::atomic<std::size_t> n_held{0};
constinit Mutex held_mutex;
Spans& held_spans() {
  return immortal([] { return Spans(); });
}
std::vector<Freed>& freed_memory() {
  return immortal([] { return std::vector<Freed>(); });
}

// The caller has the lock.
bool is_among_held(std::span<const std::byte> bytes) {
  const Spans& spans = held_spans();
  return std::any_of(spans.begin(), spans.end(), [&](std::span<const std::byte> held) {
    return held.data() < bytes.data() + bytes.size() && bytes.data() < held.data() + held.size();
  });
}

}  // namespace

void hold_memory(std::span<const std::byte> bytes) {
  const std::lock_guard guard(held_mutex);
  held_spans().push_back(bytes);
  n_held.store(held_spans().size());
}

void release_memory(std::span<const std::byte> bytes) {
  std::vector<Freed> released;
  {
    const std::lock_guard guard(held_mutex);
    Spans& spans = held_spans();
    const auto it = std::find_if(spans.begin(), spans.end(), [&](std::span<const std::byte> held) {
      return held.data() == bytes.data() && held.size() == bytes.size();
    });
    if (it != spans.end()) spans.erase(it);
    n_held.store(spans.size());
    std::vector<Freed>& freed = freed_memory();
    const auto first = std::partition(freed.begin(), freed.end(),
                                      [](const Freed& each) { return is_among_held(each.bytes); });
    released.assign(first, freed.end());
    freed.erase(first, freed.end());
  }
  for (const Freed& each : released) give_back_memory(each.raw);
}

bool is_anything_held() noexcept { return n_held.load(std::memory_order_relaxed) != 0; }

bool is_held(std::span<const std::byte> bytes) noexcept {
  if (!is_anything_held()) return false;
  const std::lock_guard guard(held_mutex);
  return is_among_held(bytes);
}

bool is_given_back_later(std::span<const std::byte> bytes, const RawMemory& raw) noexcept {
  if (!is_anything_held()) return false;
  const std::lock_guard guard(held_mutex);
  if (!is_among_held(bytes)) return false;
  try {
    freed_memory().push_back({bytes, raw});
  } catch (const std::bad_alloc&) {  // without room in the list it is never given back
  }
  return true;
}

}  // namespace palimpsest
