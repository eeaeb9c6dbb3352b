// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/thread_local_state.hpp"

#include <mutex>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/per_thread.hpp"

namespace palimpsest {

constinit thread_local ThreadState thread_state{};

namespace {

struct Registry {
  Mutex mutex;
  ThreadState* threads = nullptr;
  std::array<std::atomic<std::uint64_t>, kCounters> ended{};
};

// Constant: counting must not fail, nor a child of fork() find it half made.
constinit Registry registry;

// Adds a thread's counts to those of ended threads. The caller holds the mutex.
void add_to_ended(const ThreadState& thread) {
  for (std::size_t k = 0; k < kCounters; ++k) {
    registry.ended[k].fetch_add(thread.counts[k].load(std::memory_order_relaxed),
                                std::memory_order_relaxed);
  }
}

void say_farewell(ThreadExit&) noexcept {
  ThreadState& me = thread_state;
  while (me.free != nullptr) ::operator delete(std::exchange(me.free, me.free->next));
  const std::lock_guard lock(registry.mutex);
  add_to_ended(me);
  *me.link = me.next;
  if (me.next != nullptr) me.next->link = me.link;
  me.is_open = false;
  me.has_ended = true;
}
constinit thread_local ThreadExit farewell{say_farewell};

// The states of threads that a child lacks are about to become memory of new threads.
void forget_other_threads() noexcept {
  const ThreadState* thread = std::exchange(registry.threads, nullptr);
  for (; thread != nullptr; thread = thread->next) {
    if (thread != &thread_state) add_to_ended(*thread);
  }
  ThreadState& me = thread_state;
  if (!me.is_open) return;
  me.next = nullptr;
  me.link = &registry.threads;
  registry.threads = &me;
}

}  // namespace

ThreadState* open_thread_state() {
  ThreadState& me = thread_state;
  if (me.has_ended) return nullptr;
  at_thread_exit(farewell);
  after_fork_in_child(forget_other_threads);
  const std::lock_guard lock(registry.mutex);
  me.next = registry.threads;
  me.link = &registry.threads;
  if (me.next != nullptr) me.next->link = &me.next;
  registry.threads = &me;
  me.is_open = true;
  return &me;
}

void count_late(Counter counter, std::uint64_t n) {
  registry.ended[static_cast<std::size_t>(counter)].fetch_add(n, std::memory_order_relaxed);
}

CopyCounts all_counts() {
  const std::lock_guard lock(registry.mutex);
  const auto sum = [](Counter counter) {
    const auto k = static_cast<std::size_t>(counter);
    std::uint64_t total = registry.ended[k].load(std::memory_order_relaxed);
    for (const ThreadState* thread = registry.threads; thread != nullptr; thread = thread->next) {
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
          .eager_copied_bytes = sum(Counter::eager_copied_bytes),
          .import_copies = sum(Counter::import_copies)};
}

}  // namespace palimpsest
