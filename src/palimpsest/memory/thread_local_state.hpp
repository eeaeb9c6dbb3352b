// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "palimpsest/memory/copy_stats.hpp"

// State of each thread. With it a lazy clone costs only its two changes of the block's word.
// Internal to Storage.
namespace palimpsest {

enum class Counter : std::size_t {
  lazy_clones,
  lazy_bytes,
  copies,
  copied_bytes,
  take_overs,
  overwrites,
  eager_copies,
  eager_copied_bytes,
  import_copies,
  n_counters,
};
inline constexpr auto kCounters = static_cast<std::size_t>(Counter::n_counters);

/// Room for one object of up to kPooledBytes, reused within the thread that gave it back.
inline constexpr std::size_t kPooledBytes = 48;
// A sanitizer is to see each object come and go.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint32_t kMostPooled = 0;
#else
inline constexpr std::uint32_t kMostPooled = 64;
#endif

struct PooledRoom {
  PooledRoom* next;
};

/// Without a destructor, so that using it costs no test whether it exists, and storages of static
/// life time may still use it while the thread ends.
struct ThreadState {
  /// Written by this thread alone, read by all.
  std::array<std::atomic<std::uint64_t>, kCounters> counts;
  PooledRoom* free;
  std::uint32_t n_free;
  bool is_open;    ///< in the list of all threads, and so until it ends
  bool has_ended;  ///< only static objects are left
  ThreadState *next, **link;
};

/// Initial-exec: a constant distance from the thread pointer, also in a shared library.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadState thread_state;

/// The first use in a thread: puts its state into the list. Null when the thread has ended.
ThreadState* open_thread_state();
/// Counts after that.
void count_late(Counter counter, std::uint64_t n);

/// Adds to a counter of this thread, which all_counts() finds. One load and one store: no other
/// thread writes it.
inline void add_to(ThreadState& me, Counter counter, std::uint64_t n) {
  auto& mine = me.counts[static_cast<std::size_t>(counter)];
  mine.store(mine.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

inline void count(Counter counter, std::uint64_t n = 1) {
  ThreadState* const me = thread_state.is_open ? &thread_state : open_thread_state();
  if (me != nullptr) [[likely]]
    return add_to(*me, counter, n);
  count_late(counter, n);
}

/// Counts a lazy clone and its bytes.
inline void count_lazy_clone(std::uint64_t n, std::uint64_t bytes) {
  if (thread_state.is_open) [[likely]] {
    add_to(thread_state, Counter::lazy_clones, n);
    add_to(thread_state, Counter::lazy_bytes, bytes);
  } else {
    count(Counter::lazy_clones, n);
    count(Counter::lazy_bytes, bytes);
  }
}

/// The sum over all threads, ended ones included.
CopyCounts all_counts();

inline void* take_pooled() {
  ThreadState& me = thread_state;
  if (me.free == nullptr) [[unlikely]]
    return ::operator new(kPooledBytes);
  --me.n_free;
  return std::exchange(me.free, me.free->next);
}

inline void give_back_pooled(void* memory) noexcept {
  ThreadState& me = thread_state;
  if (!me.is_open || me.n_free >= kMostPooled) [[unlikely]]
    return ::operator delete(memory);
  me.free = ::new (memory) PooledRoom{me.free};
  ++me.n_free;
}

}  // namespace palimpsest
