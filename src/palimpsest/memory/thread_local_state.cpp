// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/thread_local_state.hpp"

#include <mutex>

namespace palimpsest {

constinit thread_local ThreadState thread_state{};

namespace {

struct Registry {
  std::mutex mutex;
  ThreadState* threads = nullptr;
  std::array<std::atomic<std::uint64_t>, kCounters> ended{};
};

// Never destroyed: threads may end later than static objects. Not from the heap: counting must not
// fail.
Registry& registry() {
  alignas(Registry) static std::byte memory[sizeof(Registry)];
  static auto* const the = new (memory) Registry;
  return *the;
}

// Its end is the end of the thread.
struct Farewell {
  ~Farewell() {
    ThreadState& me = thread_state;
    while (me.free != nullptr) ::operator delete(std::exchange(me.free, me.free->next));
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    for (std::size_t k = 0; k < kCounters; ++k) {
      all.ended[k].fetch_add(me.counts[k].load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
    }
    *me.link = me.next;
    if (me.next != nullptr) me.next->link = me.link;
    me.is_open = false;
    me.has_ended = true;
  }
};

}  // namespace

ThreadState* open_thread_state() {
  ThreadState& me = thread_state;
  if (me.has_ended) return nullptr;
  static thread_local const Farewell farewell;
  static_cast<void>(farewell);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  me.next = all.threads;
  me.link = &all.threads;
  if (me.next != nullptr) me.next->link = &me.next;
  all.threads = &me;
  me.is_open = true;
  return &me;
}

void count_late(Counter counter, std::uint64_t n) {
  registry().ended[static_cast<std::size_t>(counter)].fetch_add(n, std::memory_order_relaxed);
}

CopyCounts all_counts() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto sum = [&all](Counter counter) {
    const auto k = static_cast<std::size_t>(counter);
    std::uint64_t total = all.ended[k].load(std::memory_order_relaxed);
    for (const ThreadState* thread = all.threads; thread != nullptr; thread = thread->next) {
      total += thread->counts[k].load(std::memory_order_relaxed);
    }
    return total;
  };
  return {.lazy_clones = sum(Counter::lazy_clones),
          .lazy_bytes = sum(Counter::lazy_bytes),
          .copies = sum(Counter::copies),
          .copied_bytes = sum(Counter::copied_bytes),
          .take_overs = sum(Counter::take_overs),
          .overwrites = sum(Counter::overwrites),
          .eager_copies = sum(Counter::eager_copies),
          .eager_copied_bytes = sum(Counter::eager_copied_bytes)};
}

}  // namespace palimpsest
