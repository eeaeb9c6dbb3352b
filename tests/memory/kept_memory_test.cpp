// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/kept_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "support/expect_error.hpp"
#include "support/in_child.hpp"
#include "support/new_counter.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::in_child;

constexpr std::size_t kKiB = 1024, kMiB = kKiB * kKiB;

std::size_t mapped_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Each test has a separate memory space, with a separate peak.
Allocator& allocator_of(int space) {
  return Allocator::of(Device{DeviceType::cpu, static_cast<std::int16_t>(space)});
}

TEST(KeptMemory, ClassesWasteAtMostAnEighthAndMeetWhatFits) {
  for (std::size_t bytes = 1; bytes < kMiB; bytes += 1 + bytes / 64) {
    const std::size_t size = class_bytes(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_LE(size - bytes, bytes / 8) << bytes;
    EXPECT_EQ(class_bytes(size), size);
  }
  EXPECT_EQ(class_bytes(1000), 1000u) << "small requests go to the heap as they are";
}

TEST(KeptMemory, NoMoreIsResidentThanIsUsed) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // A huge page and slightly more than the last size class: most of the remainder is never touched.
  for (const std::size_t bytes : {std::size_t{32'768'000}, 4 * kMiB + 5 * kKiB, 9 * kMiB - 1}) {
    const RawMemory raw = obtain_memory(bytes);
    std::memset(raw.data, 1, bytes);
    const std::size_t pages = class_bytes(bytes) / page, used = (bytes + page - 1) / page;
    std::vector<unsigned char> is_resident(pages);
    ASSERT_EQ(mincore(raw.data, pages * page, is_resident.data()), 0);
    const auto n = std::count_if(is_resident.begin(), is_resident.end(),
                                 [](unsigned char flags) { return (flags & 1) != 0; });
    EXPECT_EQ(static_cast<std::size_t>(n), used) << bytes;
    give_back_memory(raw);
  }
}

// Mappings are larger than requested, so that huge pages fit; the excess is released.
TEST(KeptMemory, TakesNoMoreAddressesThanAreWanted) {
  constexpr std::size_t kBytes = std::size_t{5} << 20;
  std::vector<Block> blocks;
  Allocator& allocator = Allocator::of({});
  allocator.trim();
  const std::size_t before = mapped_bytes();
  for (int k = 0; k < 64; ++k) blocks.push_back(allocator.allocate(kBytes));
  EXPECT_LT(mapped_bytes() - before, 64 * (kBytes + kBytes / 4));
  blocks.clear();
  allocator.trim();
  EXPECT_LT(mapped_bytes(), before + 8 * kBytes);
}

TEST(KeptMemory, GivesTheLatestOfTheClassAndDropsTheOldest) {
  KeptMemory kept;
  EXPECT_EQ(kept.take(kMiB).data, nullptr);
  const RawMemory a = obtain_memory(kMiB), b = obtain_memory(kMiB), c = obtain_memory(kMiB / 2);
  ASSERT_TRUE(kept.keep(a, kMiB));
  ASSERT_TRUE(kept.keep(b, kMiB));
  ASSERT_TRUE(kept.keep(c, kMiB / 2));
  EXPECT_EQ(kept.bytes(), kMiB * 5 / 2);
  EXPECT_EQ(kept.take(kMiB / 4).data, nullptr);
  EXPECT_EQ(kept.take(kMiB - 5).data, b.data);
  ASSERT_TRUE(kept.keep(b, kMiB - 5));
  kept.trim(kMiB * 3 / 2);
  EXPECT_EQ(kept.bytes(), kMiB * 3 / 2);
  EXPECT_EQ(kept.take(kMiB).data, b.data) << "a was the oldest";
  give_back_memory(b);
  kept.trim(0);
  EXPECT_EQ(kept.bytes(), 0u);
}

TEST(KeptMemory, IsBoundedInNumberAndKeepsNothingSmall) {
  KeptMemory kept;
  const RawMemory small = obtain_memory(100);
  EXPECT_FALSE(kept.keep(small, 100));
  give_back_memory(small);
  for (int k = 0; k < 1000; ++k) ASSERT_TRUE(kept.keep(obtain_memory(kKeepFrom), kKeepFrom));
  EXPECT_EQ(kept.bytes(), 64 * kKeepFrom);
  kept.trim(0);
}

// Mappings that are never touched: addresses only.
TEST(KeptMemory, IsBoundedInBytes) {
  constexpr std::size_t kMost = 1024 * kMiB;
  KeptMemory kept;
  const RawMemory more = obtain_memory(kMost + kMiB);
  EXPECT_FALSE(kept.keep(more, kMost + kMiB));
  give_back_memory(more);
  for (std::size_t k = 1; k <= 6; ++k) {
    ASSERT_TRUE(kept.keep(obtain_memory(kMost / 4), kMost / 4));
    EXPECT_EQ(kept.bytes(), std::min(kMost, k * kMost / 4));
  }
  ASSERT_TRUE(kept.keep(obtain_memory(kMost), kMost));
  EXPECT_EQ(kept.bytes(), kMost) << "all others went back for it";
  kept.trim(0);
}

TEST(KeptMemory, WithoutRoomInItsListKeepsNothing) {
  KeptMemory kept;
  bool has_failed = false;
  for (int k = 0; k < 64 && !has_failed; ++k) {
    const RawMemory raw = obtain_memory(kKeepFrom);
    const std::uint64_t before = kept.bytes();
    bool is_kept = false;
    {
      const testing::FailingNew failing(0);
      is_kept = kept.keep(raw, kKeepFrom);
      has_failed = failing.has_failed();
    }
    EXPECT_EQ(is_kept, !has_failed);
    EXPECT_EQ(kept.bytes(), before + (is_kept ? kKeepFrom : 0));
    if (!is_kept) give_back_memory(raw);
  }
  EXPECT_TRUE(has_failed);
  kept.trim(0);
}

TEST(KeptMemory, AFreedBlockServesTheNextRequestOfItsClass) {
  Allocator& allocator = allocator_of(40);
  Block first = allocator.allocate(5 * kMiB);
  const std::byte* const data = first.data();
  first = {};
  EXPECT_GE(allocator.kept_bytes(), 5 * kMiB);
  EXPECT_EQ(allocator.stats().live_bytes, 0u);
  const Block second = allocator.allocate(5 * kMiB - 100);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.bytes(), 5 * kMiB - 100);
  EXPECT_EQ(allocator.kept_bytes(), 0u);
}

TEST(KeptMemory, IsGivenBackBeforeThePeakIsExceeded) {
  Allocator& allocator = allocator_of(41);
  { const Block largest = allocator.allocate(8 * kMiB); }
  EXPECT_EQ(allocator.kept_bytes(), 8 * kMiB);
  const Block small = allocator.allocate(kMiB);
  EXPECT_EQ(allocator.kept_bytes(), 0u) << "8 MiB kept and 1 MiB live were above the peak";
}

TEST(KeptMemory, IsGivenBackByTrim) {
  Allocator& allocator = allocator_of(42);
  { const Block a = allocator.allocate(kMiB), b = allocator.allocate(kMiB); }
  EXPECT_EQ(allocator.kept_bytes(), 2 * kMiB);
  allocator.trim(kMiB);
  EXPECT_EQ(allocator.kept_bytes(), kMiB);
  allocator.trim();
  EXPECT_EQ(allocator.kept_bytes(), 0u);
}

TEST(KeptMemory, StaysWhenNoneOfItFitsAndThePeakHasRoom) {
  Allocator& allocator = allocator_of(48);
  { const Block a = allocator.allocate(8 * kMiB), b = allocator.allocate(8 * kMiB); }
  allocator.trim(8 * kMiB);
  const Block small = allocator.allocate(kMiB);
  EXPECT_EQ(allocator.kept_bytes(), 8 * kMiB);
}

TEST(KeptMemory, IsGivenBackWhenTheSystemHasNoMore) {
  Allocator& allocator = allocator_of(49);
  { const Block a = allocator.allocate(64 * kMiB), b = allocator.allocate(80 * kMiB); }
  allocator.trim(64 * kMiB);
  ASSERT_EQ(allocator.kept_bytes(), 64 * kMiB);
  EXPECT_EQ(in_child([&] {
              const rlim_t most = mapped_bytes() + 32 * kMiB;
              const rlimit limit = {most, most};
              setrlimit(RLIMIT_AS, &limit);
              const Block block = allocator.allocate(72 * kMiB);
              return allocator.kept_bytes() == 0;
            }),
            0);
}

TEST(KeptMemory, CountsUnderALimitAndIsGivenBackBeforeTheLimitThrows) {
  Allocator& allocator = allocator_of(43);
  { const Block a = allocator.allocate(8 * kMiB), b = allocator.allocate(kMiB); }
  ASSERT_EQ(allocator.kept_bytes(), 9 * kMiB);
  const MemoryLimit limit(allocator.device(), 4 * kMiB);
  {
    const Block small = allocator.allocate(2 * kMiB);
    EXPECT_LE(allocator.kept_bytes(), 2 * kMiB) << "live and kept stay below the limit";
    const Block smaller = allocator.allocate(kMiB);
    EXPECT_LE(allocator.kept_bytes(), kMiB);
  }
  EXPECT_EQ(allocator.kept_bytes(), 3 * kMiB);
  expect_error<OutOfMemory>([&] { allocator.allocate(5 * kMiB); }, "the limit of 4194304 bytes");
  EXPECT_EQ(allocator.kept_bytes(), 0u);
}

TEST(KeptMemory, OfManyBlocksCountsUnderALimit) {
  Allocator& allocator = allocator_of(44);
  {
    std::vector<Block> blocks;
    for (int k = 0; k < 8; ++k) blocks.push_back(allocator.allocate(kMiB));
  }
  ASSERT_EQ(allocator.kept_bytes(), 8 * kMiB);
  const MemoryLimit limit(allocator.device(), 4 * kMiB);
  const Block block = allocator.allocate(2 * kMiB);
  EXPECT_LE(allocator.kept_bytes(), 2 * kMiB);
}

TEST(KeptMemory, IsOfTheClassWithWhatLiesInFrontOfTheData) {
  Allocator& allocator = allocator_of(45);
  constexpr std::uint8_t kLead = 5;
  { const Block block = allocator.allocate(kMiB, {}, kLead); }
  EXPECT_EQ(allocator.kept_bytes(), class_bytes(kMiB + kLead));
  EXPECT_GT(allocator.kept_bytes(), kMiB);
}

// The flags of the mapping of the address in /proc/self/smaps.
std::string flags_at(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool is_here = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t first = 0, last = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> first >> dash >> last && dash == '-') {
      is_here = first <= wanted && wanted < last;
    } else if (is_here && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "";
}

TEST(KeptMemory, TheLastHugePageConsistsOfSmallOnes) {
  if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0) {
    GTEST_SKIP() << "no huge pages on this system";
  }
  const RawMemory raw = obtain_memory(9 * kMiB - 1);
  EXPECT_NE(flags_at(raw.data).find(" hg "), std::string::npos);
  EXPECT_EQ(flags_at(raw.data + 8 * kMiB - 1).find(" nh "), std::string::npos);
  EXPECT_NE(flags_at(raw.data + 8 * kMiB).find(" nh "), std::string::npos);
  EXPECT_NE(flags_at(raw.data + 9 * kMiB - 1).find(" nh "), std::string::npos);
  give_back_memory(raw);
}

}  // namespace
}  // namespace palimpsest
