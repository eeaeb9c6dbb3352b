// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/pool/parallel.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/per_thread.hpp"
#include "palimpsest/kernels/pool/tsan_order.hpp"

// The caller's work before the call happens before every piece, and every piece before the return.
// Pieces are unordered among each other.
namespace palimpsest {

namespace {

constinit std::atomic<bool> was_used{false}, is_lost{false};

// A child process lacks the pool's threads, and its locks may be held for ever.
void lose_pool() noexcept {
  if (was_used.load()) is_lost.store(true);
}

// True while the thread runs something that has no other threads.
constinit thread_local bool is_alone = false;

class AloneScope {
 public:
  explicit AloneScope(bool alone) : before_(std::exchange(is_alone, alone)) {}
  ~AloneScope() { is_alone = before_; }
  AloneScope(const AloneScope&) = delete;
  AloneScope& operator=(const AloneScope&) = delete;

 private:
  bool before_;
};

// Limits a number of threads to the pool's maximum. For more the pool would print a warning.
int granted(int threads) {
  using tbb::global_control;
  const auto most = global_control::active_value(global_control::max_allowed_parallelism);
  return static_cast<int>(std::min(static_cast<std::size_t>(threads), most));
}

// Each thread keeps its last arena: making one takes longer than a small call.
struct KeptArena {
  KeptArena() = default;
  KeptArena(KeptArena&&) = default;
  KeptArena& operator=(KeptArena&&) = default;
  ~KeptArena() {
    if (is_lost.load(std::memory_order_relaxed)) static_cast<void>(arena.release());
  }
  int threads = 0;
  std::unique_ptr<tbb::task_arena> arena;
};

}  // namespace

bool has_pool() noexcept {
  if (was_used.load(std::memory_order_relaxed)) [[likely]]
    return !is_lost.load(std::memory_order_relaxed);
  after_fork_in_child(lose_pool);
  was_used.store(true);
  return true;
}

// Does not use the pool yet: asking for the number starts no thread.
int pool_threads() {
  if (is_alone) return 1;
  return is_lost.load(std::memory_order_relaxed) ? 1 : tbb::this_task_arena::max_concurrency();
}

}  // namespace palimpsest

namespace palimpsest::detail {

void run_limited(int threads, void (*call)(void*), void* body) {
  if (threads == 1) {
    const AloneScope scope(true);
    call(body);
    return;
  }
  if (threads <= 0 || !has_pool()) {
    call(body);
    return;
  }
  // A nested call with another number of threads must not find this arena, or it would replace it.
  KeptArena mine = std::exchange(of_this_thread<KeptArena>(), KeptArena());
  if (const int n = granted(threads); mine.threads != n) {
    mine.arena = std::make_unique<tbb::task_arena>(n);
    mine.threads = n;
  }
  struct GiveBack {
    KeptArena& arena;
    ~GiveBack() { of_this_thread<KeptArena>() = std::move(arena); }
  } const give_back{mine};
  const AloneScope scope(false);
  mine.arena->execute([&] { call(body); });
}

void run_ranges(index_t n, index_t grain, void (*call)(void*, index_t, index_t), void* body) {
  if (n <= 0) return;
  grain = std::max<index_t>(grain, 1);
  // For one thread the pool would cut the range all the same.
  if (n <= grain || pool_threads() == 1 || !has_pool()) {
    call(body, 0, n);
    return;
  }
  char started = 0, finished = 0;
  PALIMPSEST_RELEASE(&started);
  tbb::parallel_for(tbb::blocked_range<index_t>(0, n, static_cast<std::size_t>(grain)),
                    [&](const tbb::blocked_range<index_t>& range) {
                      PALIMPSEST_ACQUIRE(&started);
                      call(body, range.begin(), range.end());
                      PALIMPSEST_RELEASE(&finished);
                    });
  PALIMPSEST_ACQUIRE(&finished);
}

}  // namespace palimpsest::detail
