// SPDX-License-Identifier: Apache-2.0
// Limits of the number of threads.
#include "palimpsest/kernels/pool/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace palimpsest::testing {
namespace {

TEST(Parallel, LimitsNest) {
  const int all = pool_threads(), two = std::min(2, all);
  run_with_threads(1, [&] {
    EXPECT_EQ(pool_threads(), 1);
    run_with_threads(2, [&] {
      EXPECT_EQ(pool_threads(), two);
      run_with_threads(1, [] { EXPECT_EQ(pool_threads(), 1); });
      EXPECT_EQ(pool_threads(), two);
    });
    EXPECT_EQ(pool_threads(), 1);
  });
  EXPECT_EQ(pool_threads(), all);
}

TEST(Parallel, OneThreadIsTheCallingOne) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  index_t covered = 0, pieces = 0;
  run_with_threads(1, [&] {
    parallel_ranges(1000, 1, [&](index_t begin, index_t end) {
      const std::lock_guard guard(mutex);
      threads.insert(std::this_thread::get_id());
      covered += end - begin;
      ++pieces;
    });
  });
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  EXPECT_EQ(covered, 1000);
  EXPECT_EQ(pieces, 1);
}

TEST(Parallel, AnExceptionEndsTheLimit) {
  const int all = pool_threads();
  for (const int threads : {1, 2}) {
    EXPECT_THROW(run_with_threads(threads, [] { throw std::runtime_error("step"); }),
                 std::runtime_error);
    EXPECT_EQ(pool_threads(), all);
  }
}

TEST(Parallel, ALimitIsThatOfOneThread) {
  const int all = pool_threads();
  run_with_threads(1, [&] {
    int elsewhere = 0;
    std::thread([&] { elsewhere = pool_threads(); }).join();
    EXPECT_EQ(elsewhere, all);
  });
}

}  // namespace
}  // namespace palimpsest::testing
