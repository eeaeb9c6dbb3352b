// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/held_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <span>

#include "palimpsest/memory/kept_memory.hpp"
#include "palimpsest/memory/storage.hpp"

namespace palimpsest::testing {
namespace {

// Small blocks come from the heap, larger ones are kept for the next request, the largest are
// mapped.
TEST(HeldMemory, IsNeitherGivenBackNorUsedAgain) {
  for (const std::size_t size : {std::size_t{1000}, std::size_t{100} << 10, std::size_t{8} << 20}) {
    std::span<const std::byte> part;
    {
      Storage storage = Storage::allocate(size);
      std::byte* const data = storage.mutable_data();
      data[size / 2] = std::byte{7};
      part = {data + size / 2, 16};
      hold_memory(part);
    }
    EXPECT_TRUE(is_held(part));
    for (int i = 0; i < 20; ++i) {
      Storage other = Storage::allocate(size);
      const std::byte* const data = other.mutable_data();
      EXPECT_TRUE(data + size <= part.data() || part.data() + part.size() <= data);
    }
    EXPECT_EQ(part[0], std::byte{7});
    release_memory(part);
    EXPECT_FALSE(is_held(part));
    EXPECT_FALSE(is_anything_held());
  }
}

TEST(HeldMemory, FreedInTheMeantimeIsGivenBackWhenNoPartIsHeldAnyMore) {
  const std::size_t size = std::size_t{8} << 20;  // a separate mapping
  std::span<const std::byte> part, other;
  {
    Storage storage = Storage::allocate(size);
    std::byte* const data = storage.mutable_data();
    part = {data, 16};
    other = {data + size / 2, 16};
    hold_memory(part);
    hold_memory(other);
  }
  const auto is_mapped = [&] {
    const auto page = reinterpret_cast<std::uintptr_t>(part.data()) / 4096 * 4096;
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(page), 4096, &resident) == 0;
  };
  release_memory(part);
  EXPECT_TRUE(is_mapped());
  release_memory(other);
  EXPECT_FALSE(is_mapped());
}

TEST(HeldMemory, DoesNotKeepWhatIsNotHeld) {
  const std::array<std::byte, 64> bytes{};
  hold_memory(bytes);
  const RawMemory raw = obtain_memory(std::size_t{8} << 20);
  const auto page = reinterpret_cast<std::uintptr_t>(raw.data) / 4096 * 4096;
  unsigned char resident = 0;
  EXPECT_EQ(mincore(reinterpret_cast<void*>(page), 4096, &resident), 0);
  give_back_memory(raw);
  EXPECT_NE(mincore(reinterpret_cast<void*>(page), 4096, &resident), 0) << "it is still mapped";
  release_memory(bytes);
}

TEST(HeldMemory, OverlapsCountAndNeighboursDoNot) {
  const std::array<std::byte, 64> bytes{};
  const std::span<const std::byte> all(bytes);
  hold_memory(all.subspan(16, 16));
  EXPECT_TRUE(is_held(all.subspan(31, 1)));
  EXPECT_FALSE(is_held(all.subspan(32)));
  EXPECT_FALSE(is_held(all.first(16)));
  EXPECT_TRUE(is_held(all));
  release_memory(all.subspan(16, 16));
  EXPECT_FALSE(is_held(all));
}

TEST(HeldMemory, EachReleaseEndsTheHoldOfItsBytes) {
  const std::array<std::byte, 64> bytes{};
  const std::span<const std::byte> all(bytes);
  // The first has the same beginning, the second the same length.
  for (const std::size_t first : {0, 32}) {
    const std::span<const std::byte> part = all.first(16), other = all.subspan(first, 32);
    const std::span<const std::byte> as_long = all.subspan(48, 16);
    for (const std::span<const std::byte> held : {other, as_long, part}) hold_memory(held);
    release_memory(part);
    EXPECT_TRUE(is_held(other.last(1)));
    EXPECT_TRUE(is_held(as_long));
    release_memory(other);
    EXPECT_FALSE(is_held(all.first(48)));
    EXPECT_TRUE(is_held(as_long));
    release_memory(as_long);
    EXPECT_FALSE(is_anything_held());
  }
}

}  // namespace
}  // namespace palimpsest::testing
