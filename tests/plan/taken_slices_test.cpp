// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/taken_slices.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace palimpsest {
namespace {

const TensorType kWhole{DType::float32, {kUnknown, kUnknown, kUnknown}, {}};

// An axis of a slice of a dense array: `count` elements from `start` on.
struct Axis {
  index_t start, step, count;
};
Layout slice_of(const Extents& whole, const std::vector<Axis>& axes) {
  Layout slice{DType::float32, {}, {}, 0};
  index_t dense = 1;
  std::vector<index_t> strides(whole.size());
  for (std::size_t k = whole.size(); k-- > 0;) {
    strides[k] = dense;
    dense *= whole[k];
  }
  for (std::size_t k = 0; k < whole.size(); ++k) {
    slice.extents.push_back(axes[k].count);
    slice.strides.push_back(axes[k].step * strides[k]);
    slice.byte_offset += 4 * axes[k].start * strides[k];
  }
  return slice;
}

// A random slice of an axis of n elements, in either direction.
Axis random_axis(index_t n, std::mt19937& random) {
  const auto below = [&](index_t limit) {
    return std::uniform_int_distribution<index_t>(0, limit - 1)(random);
  };
  const index_t step = 1 + below(3), count = below(4) == 0 ? n / step : below(1 + n / step);
  const index_t reach = count > 0 ? (count - 1) * step : 0, first = below(n - reach);
  return below(2) == 0 ? Axis{first, step, count} : Axis{first + reach, -step, count};
}

TEST(TakenSlices, RandomSlicesAreApartIfTheyMeetNone) {
  std::mt19937 random(5);
  int n_apart = 0, n_met = 0;
  for (int round = 0; round < 300; ++round) {
    std::uniform_int_distribution<index_t> extent(1, 9);
    const Extents whole{extent(random), extent(random), extent(random)};
    TakenSlices taken;
    std::vector<Region> regions;
    for (int k = 0; k < 30; ++k) {
      std::vector<Axis> axes;
      for (index_t n : whole) axes.push_back(random_axis(n, random));
      const Layout slice = slice_of(whole, axes);
      const Region region = Region::of(slice);
      bool is_met = false;
      for (const Region& other : regions) is_met = is_met || other.meets(region, kWhole);
      ASSERT_EQ(taken.is_apart(slice, kWhole), !is_met) << round << " " << region.str();
      (is_met ? n_met : n_apart) += 1;
      if (is_met && k % 4 != 0) continue;  // so that disjoint slices also occur late
      taken.add(slice);
      regions.push_back(region);
    }
  }
  EXPECT_GT(n_apart, 1000);
  EXPECT_GT(n_met, 1000);
}

TEST(TakenSlices, FindTheirWayAmongManyRowsColumnsAndBlocks) {
  constexpr index_t n = 3600, side = 60;
  const Extents whole{n, 6, n};
  TakenSlices rows, columns, planes, blocks;
  for (index_t i = 0; i < n; ++i) {
    const index_t y = i / side * side, x = i % side * side;
    const Layout row = slice_of(whole, {{i, 1, 1}, {0, 1, 6}, {0, 1, n}});
    const Layout column = slice_of(whole, {{0, 1, n}, {3, 1, 1}, {i, 1, 1}});
    const Layout plane = slice_of(whole, {{0, 1, n}, {0, 1, 6}, {i, 1, 1}});
    const Layout block = slice_of(whole, {{y, 1, side}, {0, 1, 6}, {x, 1, side}});
    for (const auto& [taken, slice] : {std::pair(&rows, &row), std::pair(&columns, &column),
                                       std::pair(&planes, &plane), std::pair(&blocks, &block)}) {
      ASSERT_TRUE(taken->is_apart(*slice, kWhole)) << i;
      taken->add(*slice);
      EXPECT_FALSE(taken->is_apart(*slice, kWhole)) << i;
    }
  }
  const Layout one = slice_of(whole, {{n - 1, 1, 1}, {5, 1, 1}, {n - 1, 1, 1}});
  EXPECT_FALSE(rows.is_apart(one, kWhole));
  EXPECT_TRUE(columns.is_apart(one, kWhole));
  EXPECT_FALSE(planes.is_apart(one, kWhole));
  EXPECT_FALSE(blocks.is_apart(one, kWhole));
}

TEST(TakenSlices, RemaindersReachAroundTheirDivisor) {
  // Pieces of the flat array that cross the ends of its rows of 10 elements.
  const auto piece = [](index_t first, index_t width) {
    return Layout{DType::float32, {4, width}, {10, 1}, 4 * first};
  };
  TakenSlices taken;
  taken.add(piece(8, 4));
  EXPECT_TRUE(taken.is_apart(piece(2, 6), kWhole));
  EXPECT_FALSE(taken.is_apart(piece(1, 1), kWhole));
  EXPECT_FALSE(taken.is_apart(piece(10, 1), kWhole));
  EXPECT_FALSE(taken.is_apart(piece(9, 1), kWhole));
  EXPECT_FALSE(taken.is_apart(piece(7, 2), kWhole));
  EXPECT_FALSE(taken.is_apart(piece(0, 2), kWhole));
  TakenSlices inner;
  inner.add(piece(2, 6));
  EXPECT_TRUE(inner.is_apart(piece(8, 4), kWhole));
  EXPECT_FALSE(inner.is_apart(piece(8, 5), kWhole));
}

TEST(TakenSlices, NothingMeetsASliceWithoutElements) {
  TakenSlices taken;
  const Layout all{DType::float32, {5}, {1}, 0}, none{DType::float32, {0}, {1}, 0};
  taken.add(none);
  EXPECT_TRUE(taken.is_apart(all, kWhole));
  taken.add(all);
  EXPECT_TRUE(taken.is_apart(none, kWhole));
  EXPECT_FALSE(taken.is_apart(all, kWhole));
}

}  // namespace
}  // namespace palimpsest
