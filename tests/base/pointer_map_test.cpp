// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/pointer_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace palimpsest {
namespace {

// Addresses as an allocator returns them, and some dense ones.
template <std::size_t N>
std::array<int, N>& addresses() {
  static std::array<int, N> list{};
  return list;
}

TEST(PointerMap, IsWhatAMapIsUnderRandomChanges) {
  std::array<int, 300>& keys = addresses<300>();
  std::mt19937 random(1);
  PointerMap<const int, int> map;
  std::map<const int*, int> expected;
  // Grows beyond a short list and shrinks again, several times.
  for (int step = 0; step < 100000; ++step) {
    const bool grows = step / 5000 % 2 == 0;
    const int* const key = &keys[random() % keys.size()];
    if (random() % 4 < (grows ? 3u : 1u)) {
      const auto [value, is_new] = map.try_emplace(key, step);
      const auto [it, was_new] = expected.emplace(key, step);
      ASSERT_EQ(is_new, was_new);
      ASSERT_EQ(*value, it->second);
    } else {
      ASSERT_EQ(map.erase(key), expected.erase(key) == 1);
    }
    ASSERT_EQ(map.size(), expected.size());
    const int* const asked = &keys[random() % keys.size()];
    const int* const found = map.find(asked);
    ASSERT_EQ(found != nullptr, expected.contains(asked));
    ASSERT_EQ(found ? *found : -1, found ? expected.at(asked) : -1);
  }
  const std::map<const int*, int> all(map.begin(), map.end());
  EXPECT_EQ(all, expected);
}

TEST(PointerMap, VisitsEntriesInOrderOfArrival) {
  std::array<int, 300>& keys = addresses<300>();
  PointerMap<int, int> map;
  for (std::size_t i = 0; i < keys.size(); ++i)
    map[&keys[i * 7 % keys.size()]] = static_cast<int>(i);
  int expected = 0;
  for (const auto& [key, value] : map) EXPECT_EQ(value, expected++);
  EXPECT_EQ(expected, 300);
}

TEST(PointerMap, ErasingPutsTheLastEntryInTheGap) {
  std::array<int, 300>& keys = addresses<300>();
  PointerSet<int> set;
  for (int i = 0; i < 20; ++i) set.insert(&keys[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(set.erase(&keys[3]));
  EXPECT_FALSE(set.erase(&keys[3]));
  EXPECT_EQ(*(set.begin() + 3), &keys[19]);
  EXPECT_TRUE(set.contains(&keys[19]));
  EXPECT_EQ(set.size(), 19u);
}

TEST(PointerMap, HoldsWhatCanOnlyBeMoved) {
  std::array<int, 300>& keys = addresses<300>();
  PointerMap<int, std::unique_ptr<int>> map;
  for (int& key : keys) map.try_emplace(&key, std::make_unique<int>(7));
  for (std::size_t i = 0; i < 290; ++i) EXPECT_TRUE(map.erase(&keys[i]));
  for (std::size_t i = 290; i < 300; ++i) EXPECT_EQ(**map.find(&keys[i]), 7);
  map.clear();
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(&keys[299]), nullptr);
}

TEST(PointerSet, ReservingChangesNothingButTheRoom) {
  std::array<int, 300>& keys = addresses<300>();
  PointerSet<int> set;
  EXPECT_TRUE(set.insert(&keys[0]));
  set.reserve(1000);
  EXPECT_TRUE(set.contains(&keys[0]));
  EXPECT_FALSE(set.insert(&keys[0]));
  for (int& key : keys) set.insert(&key);
  EXPECT_EQ(std::set<int*>(set.begin(), set.end()).size(), keys.size());
}

}  // namespace
}  // namespace palimpsest
