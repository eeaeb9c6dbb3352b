// SPDX-License-Identifier: Apache-2.0
// Internal: the interface to the thread pool.
#pragma once

#include <memory>
#include <type_traits>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Number of elements below which a loop is not worth a second thread.
inline constexpr index_t kParallelGrain = 32768;

namespace detail {
void run_limited(int threads, void (*call)(void*), void* body);
void run_ranges(index_t n, index_t grain, void (*call)(void*, index_t, index_t), void* body);
}  // namespace detail

/// True if there is a thread pool. A child made by fork() has none if the parent had used it: its
/// loops run on the calling thread, with the same results.
bool has_pool() noexcept;
/// Number of threads that a loop may use, including the calling one.
int pool_threads();
/// Runs body() on the calling thread with at most `threads` threads of the pool, itself included,
/// and no more than the host's tbb::global_control allows; 0: all of them. One thread does not use
/// the pool. Exceptions pass through.
template <class Body>
void run_with_threads(int threads, Body&& body) {
  using B = std::remove_reference_t<Body>;
  detail::run_limited(
      threads, [](void* b) { (*static_cast<B*>(b))(); },
      const_cast<std::remove_const_t<B>*>(std::addressof(body)));
}

/// Runs body(begin, end) over disjoint ranges that cover [0, n), on oneTBB's threads when n exceeds
/// `grain`. The cuts vary from run to run: the work of body for one index must not depend on them.
template <class Body>
void parallel_ranges(index_t n, index_t grain, Body&& body) {
  using B = std::remove_reference_t<Body>;
  detail::run_ranges(
      n, grain, [](void* b, index_t begin, index_t end) { (*static_cast<B*>(b))(begin, end); },
      std::addressof(body));
}

}  // namespace palimpsest
