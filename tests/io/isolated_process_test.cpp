// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/isolated_process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>

namespace palimpsest::io_detail {
namespace {

class IsolatedProcess : public ::testing::Test {
 protected:
  SharedMemory memory_{1 << 16};
  std::atomic<std::uint64_t>& progress_ = *new (memory_.data()) std::atomic<std::uint64_t>(0);
};

TEST_F(IsolatedProcess, WhatItLeavesInSharedMemoryIsSeen) {
  int local = 1;
  const auto end = run_isolated(
      [&] {
        local = 2;
        memory_.data()[100] = 42;
        std::fputs("not to be seen", stderr);
      },
      progress_);
  EXPECT_EQ(end, ChildEnd::finished);
  EXPECT_EQ(memory_.data()[100], 42);
  EXPECT_EQ(local, 1);
}

TEST_F(IsolatedProcess, ItsDeathHarmsNobody) {
  EXPECT_EQ(run_isolated([] { std::raise(SIGSEGV); }, progress_), ChildEnd::crashed);
  EXPECT_EQ(run_isolated([] { std::abort(); }, progress_), ChildEnd::crashed);
  EXPECT_EQ(run_isolated([] { throw std::runtime_error("x"); }, progress_), ChildEnd::crashed);
  EXPECT_EQ(run_isolated([] { ::_exit(3); }, progress_), ChildEnd::crashed);
}

TEST_F(IsolatedProcess, ItIsEndedWhenItStalls) {
  const auto forever = [] {
    while (true) ::usleep(1000);
  };
  EXPECT_EQ(run_isolated(forever, progress_, {.stalled_s = 0.2}), ChildEnd::stalled);
  const auto loop = [] {
    std::atomic<int> turns = 0;
    while (true) ++turns;
  };
  EXPECT_EQ(run_isolated(loop, progress_, {.looping_s = 0.2}), ChildEnd::stalled);
}

TEST_F(IsolatedProcess, ItLivesAsLongAsItProgresses) {
  const auto slow = [&] {
    for (int i = 0; i < 10; ++i) {
      ::usleep(100000);
      ++progress_;
    }
  };
  EXPECT_EQ(run_isolated(slow, progress_, {.stalled_s = 0.6}), ChildEnd::finished);
}

TEST_F(IsolatedProcess, WildAllocationsFail) {
  const auto wild = [&] {
    void* volatile p = std::malloc(std::size_t{1} << 34);
    memory_.data()[200] = p == nullptr ? 1 : 2;
  };
  // With a sanitizer, its allocator ends the process instead.
  const auto end = run_isolated(wild, progress_);
  EXPECT_TRUE(end == ChildEnd::crashed || memory_.data()[200] == 1);
}

TEST_F(IsolatedProcess, SeveralAtOnceDoNotWaitForEachOther) {
  SharedMemory other(4096);
  auto& progress = *new (other.data()) std::atomic<std::uint64_t>(0);
  std::thread thread([&] { run_isolated([] { ::usleep(200000); }, progress); });
  EXPECT_EQ(run_isolated([&] { memory_.data()[300] = 1; }, progress_), ChildEnd::finished);
  thread.join();
  EXPECT_EQ(memory_.data()[300], 1);
}

}  // namespace
}  // namespace palimpsest::io_detail
