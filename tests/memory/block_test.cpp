// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/block.hpp"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/cow_protocol.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(Block, ForeignMemoryIsReleasedOnceWithTheLastReference) {
  std::array<std::byte, 16> memory{};
  int releases = 0;
  {
    Block first = Block::foreign(memory.data(), memory.size(), Device{}, true, [&] { ++releases; });
    EXPECT_EQ(first.data(), memory.data());
    EXPECT_EQ(first.bytes(), memory.size());
    EXPECT_EQ(first.kind(), BlockKind::foreign_writable);
    Block second = first.share();
    EXPECT_EQ(second.references(), 2u);
    first = Block();
    EXPECT_EQ(releases, 0);
    EXPECT_TRUE(second.is_sole());
  }
  EXPECT_EQ(releases, 1);
}

TEST(Block, ReadOnlyMemoryIsNeverSolelyOurs) {
  std::array<std::byte, 16> memory{};
  const Block block = Block::foreign(memory.data(), memory.size(), Device{}, false, {});
  EXPECT_EQ(block.references(), 1u);
  EXPECT_FALSE(block.is_sole());
}

TEST(Block, MovingKeepsTheReference) {
  std::array<std::byte, 4> memory{};
  int releases = 0;
  Block a = Block::foreign(memory.data(), 4, Device{}, true, [&] { ++releases; });
  Block b(std::move(a));
  EXPECT_FALSE(a);
  Block c;
  c = std::move(b);
  EXPECT_EQ(c.references(), 1u);
  Block& alias = c;
  c = std::move(alias);
  EXPECT_TRUE(c);
  EXPECT_EQ(releases, 0);
  c = Block();
  EXPECT_EQ(releases, 1);
}

TEST(Block, TheDeleterOfNoBytesRunsToo) {
  int releases = 0;
  {
    const Block block = Block::foreign(nullptr, 0, Device{}, true, [&] { ++releases; });
  }
  EXPECT_EQ(releases, 1);
  {
    const Block block = Block::foreign(nullptr, 0, Device{}, false, [&] { ++releases; });
  }
  EXPECT_EQ(releases, 2);
}

// Each deleter releases the previous memory.
TEST(Block, AChainOfManyDeletersNeedsLittleStack) {
  constexpr int kLength = 300'000;
  int releases = 0;
  Block last;
  for (int k = 0; k < kLength; ++k) {
    auto before = std::make_shared<Block>(std::move(last));
    last = Block::foreign(nullptr, 0, Device{}, true, [before, &releases] { ++releases; });
  }
  last = Block();
  EXPECT_EQ(releases, kLength);
}

TEST(Block, ADeleterMayDropMuchAtOnce) {
  constexpr int kEach = 40;
  int releases = 0;
  // Forty within each of forty within one, behind a chain of the maximum depth of nested deleters.
  const auto count = [&releases] { ++releases; };
  const auto bundle = [&](auto make) {
    auto blocks = std::make_shared<std::vector<Block>>();
    for (int k = 0; k < kEach; ++k) blocks->push_back(make());
    return Block::foreign(nullptr, 0, Device{}, true, [blocks, &releases] { ++releases; });
  };
  Block top = bundle(
      [&] { return bundle([&] { return Block::foreign(nullptr, 0, Device{}, true, count); }); });
  for (int k = 0; k < 20; ++k) {
    auto before = std::make_shared<Block>(std::move(top));
    top = Block::foreign(nullptr, 0, Device{}, true, [before, &releases] { ++releases; });
  }
  top = Block();
  EXPECT_EQ(releases, 20 + 1 + kEach + kEach * kEach);
}

TEST(Block, TooManyReferencesAreAnErrorAndChangeNothing) {
  std::array<std::byte, 4> memory{};
  Block block = Block::foreign(memory.data(), 4, Device{}, true, {});
  auto& word = block.header()->word;
  word.store(cow::kMaxRefs);
  expect_error<OverflowError>([&] { block.share(); }, "too many lazy clones");
  EXPECT_EQ(word.load(), cow::kMaxRefs);
  word.store(cow::kOneRef);
}

}  // namespace
}  // namespace palimpsest
