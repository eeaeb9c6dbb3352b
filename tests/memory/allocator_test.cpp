// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/allocator.hpp"

#include <cstring>
#include <thread>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::uintptr_t address(const Block& block) {
  return reinterpret_cast<std::uintptr_t>(block.data());
}

Allocator& allocator() { return Allocator::of(Device{}); }

TEST(Allocator, AlignsSmallBlocksTo64Bytes) {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 4095, 1 << 20}) {
    Block block = allocator().allocate(bytes);
    EXPECT_EQ(block.bytes(), bytes);
    EXPECT_EQ(address(block) % 64, 0u);
    EXPECT_TRUE(block.is_sole());
    std::memset(block.data(), 7, bytes);
  }
}

TEST(Allocator, AlignsBigBlocksToHugePages) {
  for (const std::size_t bytes : {4 * kMiB, 4 * kMiB + 1, 7 * kMiB}) {
    Block block = allocator().allocate(bytes);
    EXPECT_EQ(address(block) % (2 * kMiB), 0u);
    std::memset(block.data(), 7, bytes);
  }
}

TEST(Allocator, CountsTheBytesThatWereAskedFor) {
  const AllocatorStats before = allocator().stats();
  {
    const Block a = allocator().allocate(100), b = allocator().allocate(5 * kMiB + 3);
    const AllocatorStats during = allocator().stats();
    EXPECT_EQ(during.live_bytes - before.live_bytes, 103 + 5 * kMiB);
    EXPECT_EQ(during.total_bytes - before.total_bytes, 103 + 5 * kMiB);
    EXPECT_EQ(during.calls - before.calls, 2u);
    EXPECT_GE(during.peak_bytes, during.live_bytes);
  }
  EXPECT_EQ(allocator().stats().live_bytes, before.live_bytes);
}

TEST(Allocator, OfASpaceThatNobodyUsedHasCountedNothing) {
  const Allocator& allocator = Allocator::of(Device{DeviceType::cpu, 57});
  const AllocatorStats stats = allocator.stats();
  EXPECT_EQ(stats.live_bytes, 0u);
  EXPECT_EQ(stats.peak_bytes, 0u);
  EXPECT_EQ(stats.calls, 0u);
  EXPECT_EQ(allocator.kept_bytes(), 0u);
}

TEST(Allocator, KeepsMemorySpacesApart) {
  Allocator& other = Allocator::of(Device{DeviceType::cpu, 1});
  EXPECT_NE(&other, &allocator());
  EXPECT_EQ(other.device(), (Device{DeviceType::cpu, 1}));
  const AllocatorStats before = allocator().stats();
  const Block block = other.allocate(10);
  EXPECT_EQ(block.device(), other.device());
  EXPECT_EQ(allocator().stats().calls, before.calls);
}

TEST(Allocator, RefusesDevicesThatAreNotThere) {
  expect_error<DeviceError>(
      [] {
        Allocator::of(Device{DeviceType::cpu, 64});
      },
      "got cpu:64, expected cpu:0 .. cpu:63");
  expect_error<DeviceError>(
      [] {
        Allocator::of(Device{DeviceType::opencl, 99});
      },
      "opencl:99: this machine has");
}

TEST(Allocator, ReportsWhatTheSystemCannotGive) {
  const AllocatorStats before = allocator().stats();
  expect_error<OutOfMemory>([] { allocator().allocate(std::size_t{1} << 50, "dream"); },
                            "asked 1125899906842624 bytes for dream");
  expect_error<OutOfMemory>([] { allocator().allocate(~std::size_t{0}); }, "no more memory");
  EXPECT_EQ(allocator().stats().live_bytes, before.live_bytes);
  EXPECT_EQ(allocator().stats().calls, before.calls);
}

TEST(MemoryScope, MeasuresThePeakAboveItsStart) {
  const Block outside = allocator().allocate(1000);
  const MemoryScope scope;
  EXPECT_EQ(scope.peak_bytes(), 0u);
  {
    const Block a = allocator().allocate(300);
    const Block b = allocator().allocate(50);
  }
  const Block c = allocator().allocate(40);
  EXPECT_EQ(scope.peak_bytes(), 350u);
  EXPECT_EQ(scope.allocated_bytes(), 390u);
  EXPECT_EQ(scope.calls(), 3u);
  EXPECT_EQ(scope.live_bytes(), 40);
}

TEST(MemoryScope, Nests) {
  const MemoryScope outer;
  const Block a = allocator().allocate(100);
  {
    const MemoryScope inner;
    const Block b = allocator().allocate(10);
    EXPECT_EQ(inner.peak_bytes(), 10u);
  }
  {
    const MemoryScope inner;
    EXPECT_EQ(inner.peak_bytes(), 0u);
  }
  EXPECT_EQ(outer.peak_bytes(), 110u);
}

TEST(MemoryScope, CanStartBelowBlocksThatEndInIt) {
  Block a = allocator().allocate(100);
  const MemoryScope scope;
  a = Block();
  EXPECT_EQ(scope.live_bytes(), -100);
  const Block b = allocator().allocate(60);
  EXPECT_EQ(scope.peak_bytes(), 0u);
}

TEST(MemoryScope, SeesAllThreads) {
  const MemoryScope scope;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) allocator().allocate(8);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scope.calls(), 4000u);
  EXPECT_EQ(scope.allocated_bytes(), 32000u);
  EXPECT_GE(scope.peak_bytes(), 8u);
  EXPECT_LE(scope.peak_bytes(), 32u);
  EXPECT_EQ(scope.live_bytes(), 0);
}

TEST(MemoryLimit, RefusesWhatExceedsItAndNamesTheLargestBlocks) {
  const std::uint64_t live = allocator().stats().live_bytes;
  const Block big = allocator().allocate(3000, "arena");
  const Block small = allocator().allocate(20, "weights");
  const MemoryLimit limit(Device{}, live + 4000);
  const Block fits = allocator().allocate(980);
  const auto ask = [] { allocator().allocate(1, "straw"); };
  expect_error<OutOfMemory>(ask, "limit of " + std::to_string(live + 4000) + " bytes");
  expect_error<OutOfMemory>(ask, "asked 1 bytes for straw, live " + std::to_string(live + 4000));
  expect_error<OutOfMemory>(ask, "largest named blocks: arena (3000), weights (20)");
  EXPECT_EQ(allocator().stats().live_bytes, live + 4000);
}

TEST(MemoryLimit, NamesFiveBlocksTheLargestFirstAndEqualOnesByName) {
  Allocator& allocator = Allocator::of(Device{DeviceType::cpu, 58});
  const std::pair<std::size_t, const char*> sizes[] = {
      {10, "small"}, {30, "second"}, {20, "middle"}, {30, "first"}, {5, "tiny"}, {1, "least"}};
  std::vector<Block> blocks;
  for (const auto& [bytes, name] : sizes) blocks.push_back(allocator.allocate(bytes, name));
  const MemoryLimit limit(allocator.device(), 100);
  expect_error<OutOfMemory>(
      [&] { allocator.allocate(100); },
      "largest named blocks: first (30), second (30), middle (20), small (10), tiny (5). Try");
}

TEST(MemoryLimit, EndsWithItsScopeAndTheLowestCounts) {
  const std::uint64_t live = allocator().stats().live_bytes;
  const MemoryLimit wide(Device{}, live + 1000);
  {
    const MemoryLimit narrow(Device{}, live + 10);
    const MemoryLimit wider(Device{}, live + 2000);
    EXPECT_THROW(allocator().allocate(11), OutOfMemory);
  }
  EXPECT_NO_THROW(allocator().allocate(1000));
  EXPECT_THROW(allocator().allocate(1001), OutOfMemory);
  EXPECT_NO_THROW(Allocator::of(Device{DeviceType::cpu, 1}).allocate(2000));
}

TEST(MemoryLimit, BelowWhatIsLiveRefusesEverythingButNothing) {
  const Block block = allocator().allocate(100);
  const MemoryLimit limit(Device{}, 10);
  expect_error<OutOfMemory>([] { allocator().allocate(1); }, "no named blocks");
  expect_error<OutOfMemory>([] { allocator().allocate(~std::size_t{0}); }, "limit of 10");
}

TEST(FailingAllocator, FailsExactlyTheNthAllocation) {
  {
    const FailingAllocator failing(2);
    EXPECT_NO_THROW(allocator().allocate(1));
    EXPECT_NO_THROW(Allocator::of(Device{DeviceType::cpu, 2}).allocate(1));
    EXPECT_FALSE(failing.has_failed());
    expect_error<OutOfMemory>([] { allocator().allocate(1); }, "injected failure");
    EXPECT_TRUE(failing.has_failed());
    EXPECT_NO_THROW(allocator().allocate(1));
  }
  { const FailingAllocator unused(0); }
  EXPECT_NO_THROW(allocator().allocate(1));
}

}  // namespace
}  // namespace palimpsest
