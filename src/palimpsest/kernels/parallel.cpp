// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/parallel.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace palimpsest {

int pool_threads() { return tbb::this_task_arena::max_concurrency(); }

}  // namespace palimpsest

namespace palimpsest::detail {

void run_ranges(index_t n, index_t grain, void (*call)(void*, index_t, index_t), void* body) {
  if (n <= 0) return;
  grain = std::max<index_t>(grain, 1);
  if (n <= grain) {
    call(body, 0, n);
    return;
  }
  tbb::parallel_for(
      tbb::blocked_range<index_t>(0, n, static_cast<std::size_t>(grain)),
      [=](const tbb::blocked_range<index_t>& range) { call(body, range.begin(), range.end()); });
}

}  // namespace palimpsest::detail
