// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/thread_scratch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "support/malloc_counter.hpp"

namespace palimpsest {
namespace {

using Big = std::array<std::byte, 400 << 10>;  // one in each chunk

std::size_t bytes_for(int depth) {
  const std::size_t before = testing::bytes_of_mallocs();
  const auto nest = [](const auto& self, int n) -> void {
    if (n == 0) return;
    const Scratched<Big> big;
    big->front() = std::byte{1};
    self(self, n - 1);
  };
  nest(nest, depth);
  return testing::bytes_of_mallocs() - before;
}

// Plans announce kThreadScratchBytes for each thread.
TEST(ThreadScratch, AThreadKeepsNoMoreThanIsAnnounced) {
  std::thread([] {
    const auto deepest = static_cast<int>(kThreadScratchBytes / kScratchChunkBytes);
    EXPECT_GE(bytes_for(deepest), kThreadScratchBytes);
    EXPECT_LT(bytes_for(deepest), kScratchChunkBytes) << "it was given back";
    EXPECT_GE(bytes_for(deepest + 2), 2 * kScratchChunkBytes);
    EXPECT_GE(bytes_for(deepest + 2), 2 * kScratchChunkBytes) << "it was kept";
    EXPECT_LT(bytes_for(deepest), kScratchChunkBytes);
  }).join();
}

}  // namespace
}  // namespace palimpsest
