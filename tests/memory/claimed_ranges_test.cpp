// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/claimed_ranges.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "palimpsest/memory/allocator.hpp"

namespace palimpsest {
namespace {

struct ClaimedRangesTest : ::testing::Test {
  std::vector<std::byte> memory = std::vector<std::byte>(4096);

  Storage part(std::size_t first, std::size_t bytes, bool writable = true) {
    return Storage::from_foreign(memory.data() + first, bytes, {}, writable);
  }
};

// While it lives, the bytes of a storage are claimed if nothing else claims them.
struct Claimed {
  explicit Claimed(Storage s) : storage(std::move(s)), holds(claim_range(storage, {})) {}
  ~Claimed() {
    if (holds) release_range(storage);
  }
  Claimed(const Claimed&) = delete;
  Claimed& operator=(const Claimed&) = delete;
  Storage storage;
  bool holds;
};

TEST_F(ClaimedRangesTest, BytesOfForeignMemoryHaveOneHolder) {
  const Claimed first(part(64, 64));
  EXPECT_TRUE(first.holds);
  EXPECT_FALSE(Claimed(part(64, 64)).holds);
  EXPECT_FALSE(Claimed(part(127, 1)).holds);
  EXPECT_FALSE(Claimed(part(0, 65)).holds);
  EXPECT_FALSE(Claimed(part(0, 4096)).holds);
  EXPECT_FALSE(Claimed(part(64, 64, false)).holds);
  EXPECT_TRUE(Claimed(part(0, 64)).holds);
  EXPECT_TRUE(Claimed(part(128, 64)).holds);
  EXPECT_TRUE(Claimed(part(100, 0)).holds);
}

TEST_F(ClaimedRangesTest, AReleasedRangeMayBeClaimedAgain) {
  { const Claimed first(part(0, 100)); }
  EXPECT_TRUE(Claimed(part(0, 100)).holds);
  const Storage mine = part(0, 100), again = part(50, 100);
  ASSERT_TRUE(claim_range(mine, {}));
  EXPECT_TRUE(meets_claimed_range(again));
  EXPECT_FALSE(claim_range(again, {}));
  EXPECT_TRUE(claim_range(again, mine));  // which its holder gives up
  release_range(mine);
  release_range(again);
  EXPECT_FALSE(meets_claimed_range(again));
}

TEST_F(ClaimedRangesTest, ReadOnlyMemoryHasAnyNumberOfHoldersButNoWriter) {
  const Claimed a(part(0, 100, false)), b(part(50, 100, false));
  EXPECT_TRUE(a.holds);
  EXPECT_TRUE(b.holds);
  EXPECT_FALSE(Claimed(part(120, 10)).holds);
  EXPECT_TRUE(Claimed(part(150, 10)).holds);
}

TEST_F(ClaimedRangesTest, SegmentsAreToldByTheirInodes) {
  const Storage segment = Storage::shared_memory(8192);
  const Claimed first(segment);
  EXPECT_TRUE(first.holds);
  const Claimed second(Storage::attach_shared_memory(segment.shared_descriptor()));
  EXPECT_FALSE(second.holds);
  EXPECT_TRUE(Claimed(Storage::shared_memory(8192)).holds);
}

TEST_F(ClaimedRangesTest, MemoryOfTheLibraryCountsWhenItsAddressWasHandedOut) {
  Storage own = Storage::allocate(64);
  const Storage shown = Storage::from_foreign(own.mutable_data(), 64, {}, true);
  own.claim();
  EXPECT_FALSE(meets_claimed_range(shown));  // nothing is known about the address
  {
    const WritableExport exported(own);
    EXPECT_TRUE(meets_claimed_range(shown));
  }
  {
    const Storage::Pin pin = own.pin();
    hold_range(own);
    EXPECT_TRUE(meets_claimed_range(shown));
  }
  release_range(own);
  own.give_up_claim();
  EXPECT_FALSE(meets_claimed_range(shown));
}

// Against a comparison with all.
TEST_F(ClaimedRangesTest, ASearchFindsWhatAComparisonWithAllFinds) {
  struct Known {
    Storage storage;
    std::size_t low, high;
    bool writable;
  };
  std::mt19937 random(7);
  std::vector<Known> all;
  for (int step = 0; step < 20000; ++step) {
    if (!all.empty() && random() % 2 == 0) {
      const std::size_t k = random() % all.size();
      release_range(all[k].storage);
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(k));
      continue;
    }
    const std::size_t bytes = 1 + random() % (std::size_t{1} << (random() % 11));
    const std::size_t low = random() % (memory.size() - bytes);
    Known made{part(low, bytes, random() % 4 == 0), low, low + bytes, false};
    made.writable = made.storage.state() == StorageState::foreign_writable;
    const bool meets = std::any_of(all.begin(), all.end(), [&](const Known& k) {
      return k.low < made.high && made.low < k.high && (k.writable || made.writable);
    });
    ASSERT_EQ(claim_range(made.storage, {}), !meets) << step;
    if (!meets) all.push_back(made);
  }
  for (const Known& k : all) release_range(k.storage);
}

}  // namespace
}  // namespace palimpsest
