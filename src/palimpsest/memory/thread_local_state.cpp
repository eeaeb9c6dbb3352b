// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/thread_local_state.hpp"

#include <mutex>
#include <new>
#include <utility>

namespace palimpsest {
namespace {

// A sanitizer is to see each object come and go.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kMostPooled = 0;
#else
constexpr std::size_t kMostPooled = 64;
#endif

constexpr auto kCounters = static_cast<std::size_t>(Counter::n_counters);
using Counts = std::array<std::atomic<std::uint64_t>, kCounters>;

struct Free {
  Free* next;
};

// Without a destructor, so that using it costs no test whether it exists, and storages of static
// life time may still use it while the thread ends.
struct ThreadState {
  Counts counts;
  Free* free;
  std::size_t n_free;
  bool is_registered, has_ended;
  ThreadState *next, **link;
};

#if defined(__GNUC__) && defined(__ELF__)
// Its address is then a constant distance from the thread pointer, also in a shared library.
__attribute__((tls_model("initial-exec")))
#endif
constinit thread_local ThreadState state{};

struct Registry {
  std::mutex mutex;
  ThreadState* threads = nullptr;
  Counts ended{};
};

// Never destroyed: threads may end later than static objects.
Registry& registry() {
  static auto* const the = new Registry;
  return *the;
}

void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// Its end is the end of the thread.
struct Farewell {
  ~Farewell() {
    while (state.free != nullptr) ::operator delete(std::exchange(state.free, state.free->next));
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    for (std::size_t k = 0; k < kCounters; ++k) {
      all.ended[k].fetch_add(state.counts[k].load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
    }
    *state.link = state.next;
    if (state.next != nullptr) state.next->link = state.link;
    state.has_ended = true;
  }
};

void enter_registry() {
  static thread_local const Farewell farewell;
  static_cast<void>(farewell);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  state.next = all.threads;
  state.link = &all.threads;
  if (state.next != nullptr) state.next->link = &state.next;
  all.threads = &state;
  state.is_registered = true;
}

// This thread's state, or null when it has ended and only static objects are left.
ThreadState* mine() {
  if (!state.is_registered) [[unlikely]]
    enter_registry();
  return state.has_ended ? nullptr : &state;
}

void count_late(Counter counter, std::uint64_t n) {
  registry().ended[static_cast<std::size_t>(counter)].fetch_add(n, std::memory_order_relaxed);
}

}  // namespace

void count(Counter counter, std::uint64_t n) {
  ThreadState* const me = mine();
  if (me == nullptr) return count_late(counter, n);
  add(me->counts[static_cast<std::size_t>(counter)], n);
}

void count(Counter a, std::uint64_t n, Counter b, std::uint64_t m) {
  count(a, n);
  count(b, m);
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

void* take_pooled() {
  ThreadState* const me = mine();
  if (me == nullptr || me->free == nullptr) return ::operator new(kPooledBytes);
  --me->n_free;
  return std::exchange(me->free, me->free->next);
}

void give_back_pooled(void* memory) noexcept {
  if (!state.is_registered || state.has_ended || state.n_free >= kMostPooled) {
    ::operator delete(memory);
    return;
  }
  state.free = new (memory) Free{state.free};
  ++state.n_free;
}

}  // namespace palimpsest
