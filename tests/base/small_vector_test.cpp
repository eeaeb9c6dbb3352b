// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/small_vector.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

namespace palimpsest {
namespace {

using Vector = SmallVector<std::int64_t, 4>;

Vector counting(std::size_t n) {
  Vector v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

// Sizes inside, at and beyond the inline capacity.
constexpr std::size_t kSizes[] = {0, 1, 3, 4, 5, 8, 9, 33};

TEST(SmallVector, IsMadeFromCountsListsSpansAndRanges) {
  EXPECT_TRUE(Vector().empty());
  EXPECT_EQ(Vector(3, 7), (Vector{7, 7, 7}));
  EXPECT_EQ(Vector(2), (Vector{0, 0}));
  EXPECT_EQ((Vector{3, 7}).size(), 2u) << "a list, not a count and a value";
  const std::vector<std::int64_t> values{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(Vector(values), (Vector{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Vector(std::span(values).first(2)), (Vector{1, 2}));
  const std::vector<int> ints{1, 2};
  EXPECT_EQ(Vector(ints.begin(), ints.end()), (Vector{1, 2}));
}

TEST(SmallVector, GrowsBeyondItsInlineElements) {
  Vector v;
  for (std::int64_t i = 0; i < 100; ++i) v.push_back(i);
  EXPECT_EQ(v, counting(100));
  EXPECT_EQ(v.front(), 0);
  EXPECT_EQ(v.back(), 99);
}

TEST(SmallVector, PushesItsOwnElementWhileGrowing) {
  Vector v = counting(4);
  v.push_back(v[1]);
  v.resize(20, v[2]);
  EXPECT_EQ(v[4], 1);
  EXPECT_EQ(v[19], 2);
}

TEST(SmallVector, CopiesAreIndependent) {
  for (std::size_t n : kSizes) {
    const Vector original = counting(n);
    Vector copy = original;
    EXPECT_EQ(copy, original);
    copy.push_back(-1);
    EXPECT_EQ(original, counting(n));
    for (std::size_t m : kSizes) {
      Vector assigned = counting(m);
      assigned = original;
      EXPECT_EQ(assigned, original);
    }
  }
}

TEST(SmallVector, MovesLeaveAnEmptyVectorThatWorks) {
  for (std::size_t n : kSizes) {
    for (std::size_t m : kSizes) {
      Vector from = counting(n), to = counting(m);
      to = std::move(from);
      EXPECT_EQ(to, counting(n));
      EXPECT_TRUE(from.empty());
      from.push_back(5);
      EXPECT_EQ(from, Vector{5});
      EXPECT_EQ(to, counting(n));
    }
    Vector source = counting(n);
    const Vector constructed(std::move(source));
    EXPECT_EQ(constructed, counting(n));
    source.resize(6, 2);
    EXPECT_EQ(source, Vector(6, 2));
  }
}

TEST(SmallVector, KeepsItsElementsWhenAssignedToItself) {
  for (std::size_t n : kSizes) {
    Vector v = counting(n);
    Vector& same = v;
    v = same;
    EXPECT_EQ(v, counting(n));
    v = std::move(same);
    EXPECT_EQ(v, counting(n));
    v.assign(v.begin(), v.end());
    EXPECT_EQ(v, counting(n));
    std::swap(v, same);
    EXPECT_EQ(v, counting(n));
  }
}

TEST(SmallVector, AssignsAPartOfItself) {
  Vector v = counting(6);
  v.assign(v.begin() + 2, v.end());
  EXPECT_EQ(v, (Vector{2, 3, 4, 5}));
}

TEST(SmallVector, SwapsInlineWithAllocated) {
  Vector a = counting(2), b = counting(9);
  std::swap(a, b);
  EXPECT_EQ(a, counting(9));
  EXPECT_EQ(b, counting(2));
}

TEST(SmallVector, InsertsAndErasesAnywhere) {
  Vector v{1, 3};
  v.insert(1, 2);
  v.insert(0, 0);
  v.insert(4, 4);
  EXPECT_EQ(v, counting(5));
  v.insert(0, v[4]);
  EXPECT_EQ(v, (Vector{4, 0, 1, 2, 3, 4}));
  v.erase(0);
  v.erase(4);
  v.erase(1);
  EXPECT_EQ(v, (Vector{0, 2, 3}));
  v.pop_back();
  EXPECT_EQ(v, (Vector{0, 2}));
  v.clear();
  EXPECT_TRUE(v.empty());
}

TEST(SmallVector, ShrinksAndGrowsWithTheGivenValue) {
  Vector v{1, 2, 3};
  v.resize(1);
  v.resize(3, 9);
  EXPECT_EQ(v, (Vector{1, 9, 9}));
}

TEST(SmallVector, ComparesLexicographically) {
  EXPECT_LT((Vector{1, 2}), (Vector{1, 3}));
  EXPECT_LT((Vector{1}), (Vector{1, 0}));
  EXPECT_GT((Vector{2}), (Vector{1, 9, 9, 9, 9}));
  EXPECT_NE((Vector{1}), (Vector{1, 1}));
  EXPECT_EQ(counting(9), counting(9));
}

TEST(SmallVector, IsASpan) {
  const Vector v{4, 5};
  const std::span<const std::int64_t> span = v;
  EXPECT_EQ(span.data(), v.data());
  EXPECT_EQ(span.size(), 2u);
}

}  // namespace
}  // namespace palimpsest
