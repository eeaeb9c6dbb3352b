// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/parallel.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "palimpsest/kernels/tsan_order.hpp"

// What the caller did comes before every piece, and every piece before the return. Nothing orders
// the pieces among each other.
namespace palimpsest {

int pool_threads() { return tbb::this_task_arena::max_concurrency(); }

void run_with_threads(int n, const std::function<void()>& f) {
  tbb::task_arena arena(n);
  arena.execute(f);
}

}  // namespace palimpsest

namespace palimpsest::detail {

void run_limited(int threads, void (*call)(void*), void* body) {
  if (threads <= 0) {
    call(body);
    return;
  }
  // Making an arena takes longer than a small call: each thread keeps its last one.
  struct Kept {
    int threads = 0;
    std::unique_ptr<tbb::task_arena> arena;
  };
  static thread_local Kept kept;
  if (kept.threads != threads) {
    kept.arena = std::make_unique<tbb::task_arena>(threads);
    kept.threads = threads;
  }
  // What runs inside may want another number: it must not find this one to replace it.
  Kept mine = std::move(kept);
  kept = Kept();
  try {
    mine.arena->execute([&] { call(body); });
  } catch (...) {
    kept = std::move(mine);
    throw;
  }
  kept = std::move(mine);
}

void run_ranges(index_t n, index_t grain, void (*call)(void*, index_t, index_t), void* body) {
  if (n <= 0) return;
  grain = std::max<index_t>(grain, 1);
  // The pool would cut what one thread does, too.
  if (n <= grain || pool_threads() == 1) {
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
