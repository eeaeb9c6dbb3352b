// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/fixed_array.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

namespace palimpsest {
namespace {

TEST(FixedArray, HoldsAsManyElementsAsItWasGiven) {
  for (const std::size_t n : {0u, 1u, 2u, 3u, 9u}) {
    FixedArray<int, 2> array(n);
    EXPECT_EQ(array.size(), n);
    EXPECT_EQ(array.empty(), n == 0);
    EXPECT_EQ(std::accumulate(array.begin(), array.end(), 0), 0) << "they start from nothing";
    std::iota(array.begin(), array.end(), 1);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(array[i], static_cast<int>(i) + 1);
    EXPECT_EQ(array.data(), array.begin());
  }
}

TEST(FixedArray, FewElementsLieInside) {
  FixedArray<int, 2> few(2), many(3);
  const auto lies_in = [](const FixedArray<int, 2>& array) {
    const auto* const first = reinterpret_cast<const std::byte*>(&array);
    const auto* const data = reinterpret_cast<const std::byte*>(array.data());
    return data >= first && data < first + sizeof(array);
  };
  EXPECT_TRUE(lies_in(few));
  EXPECT_FALSE(lies_in(many));
}

TEST(FixedArray, ElementsNeedNotBeCopyable) {
  FixedArray<std::unique_ptr<int>, 1> array(2);
  array[1] = std::make_unique<int>(3);
  EXPECT_EQ(array[0], nullptr);
  EXPECT_EQ(*array[1], 3);
}

}  // namespace
}  // namespace palimpsest
