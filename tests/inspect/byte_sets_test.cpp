// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/byte_sets.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "palimpsest/inspect/debug/scan_values.hpp"
#include "palimpsest/run/debug_value.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

Layout random_layout(std::mt19937& random) {
  constexpr std::array kDTypes{DType::int8, DType::int16, DType::float32, DType::complex64};
  Layout layout{kDTypes[random() % kDTypes.size()], {}, {}, 0};
  for (auto rank = random() % 4; rank > 0; --rank) {
    layout.extents.push_back(static_cast<index_t>(random() % 8 == 0 ? 0 : 1 + random() % 4));
    layout.strides.push_back(static_cast<index_t>(random() % 11) - 5);
  }
  return layout;
}

// The offsets of all elements, in elements, in row-major order.
std::vector<index_t> places(const Layout& layout) {
  std::vector<index_t> all{0};
  for (std::size_t axis = 0; axis < layout.extents.size(); ++axis) {
    std::vector<index_t> next;
    for (const index_t place : all) {
      for (index_t i = 0; i < layout.extents[axis]; ++i) {
        next.push_back(place + i * layout.strides[axis]);
      }
    }
    all = next;
  }
  return all;
}

std::set<index_t> bytes_of(const Layout& layout) {
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  std::set<index_t> bytes;
  for (const index_t place : places(layout)) {
    for (index_t b = 0; b < item; ++b) bytes.insert(place * item + b);
  }
  return bytes;
}

TEST(ByteSets, MasksAndRangesAreThoseOfTheElements) {
  std::mt19937 random(1);
  std::array<std::byte, 2000> memory{};
  for (int round = 0; round < 1000; ++round) {
    const Layout layout = random_layout(random);
    const std::set<index_t> bytes = bytes_of(layout);
    const ByteMask mask = mask_of(layout);
    const ConstView view{&memory[1000], layout.dtype, layout.extents, layout.strides};
    const ByteRange range = range_of(view);
    if (bytes.empty()) {
      EXPECT_TRUE(mask.empty());
      EXPECT_TRUE(range.empty());
      continue;
    }
    const index_t first = *bytes.begin(), last = *bytes.rbegin();
    ASSERT_EQ(static_cast<index_t>(mask.size()), last - first + 1);
    for (index_t k = first; k <= last; ++k) {
      ASSERT_EQ(mask[static_cast<std::size_t>(k - first)], bytes.contains(k)) << round;
    }
    EXPECT_EQ(range.begin, &memory[1000] + first);
    EXPECT_EQ(range.end, &memory[1000] + last + 1);
  }
}

TEST(ByteSets, MeetWhereElementsHaveAByteInCommon) {
  std::mt19937 random(2);
  std::array<std::byte, 2000> memory{};
  int n_meet = 0;
  for (int round = 0; round < 3000; ++round) {
    const Layout a = random_layout(random), b = random_layout(random);
    const auto distance = static_cast<index_t>(random() % 60) - 30;
    const ConstView x{&memory[1000], a.dtype, a.extents, a.strides},
        y{&memory[1000] + distance, b.dtype, b.extents, b.strides};
    const std::set<index_t> of_a = bytes_of(a), of_b = bytes_of(b);
    const bool expected = std::any_of(of_b.begin(), of_b.end(),
                                      [&](index_t k) { return of_a.contains(k + distance); });
    n_meet += expected ? 1 : 0;
    ASSERT_EQ(bytes_meet(x, y), expected) << round;
    ASSERT_EQ(bytes_meet(y, x), expected) << round;
  }
  EXPECT_GT(n_meet, 300);
}

TEST(ByteSets, ARegionHoldsTheBytesOfItsElements) {
  const TensorType type{DType::int16, {3, 4, 5}, {}};
  const Region region = Region::box({{1, 1, 2, -1}, {0, 2, 2, -1}, {3, 1, 2, -1}}, 0);
  for (index_t i = 0; i < 3; ++i) {
    for (index_t j = 0; j < 4; ++j) {
      for (index_t k = 0; k < 5; ++k) {
        const bool is_in = i >= 1 && (j == 0 || j == 2) && k >= 3;
        for (const index_t byte : {0, 1}) {
          EXPECT_EQ(holds(region, type, 2 * ((i * 4 + j) * 5 + k) + byte, 1), is_in) << i << j << k;
        }
      }
    }
  }
}

TEST(ByteSets, InputsThatOutputsShareAreWritten) {
  const AliasMap map{{0, {1, 2}}, {2, {2, 4}}, {3, {0}}};
  EXPECT_TRUE(share_an_input(map, 0, 2));
  EXPECT_FALSE(share_an_input(map, 0, 3));
  EXPECT_FALSE(share_an_input(map, 0, 1));
  EXPECT_FALSE(share_an_input(map, 1, 0));
  EXPECT_EQ(text_of(map), "{0: [1, 2], 2: [2, 4], 3: [0]}");
  EXPECT_EQ(text_of(AliasMap{}), "{}");
  EXPECT_EQ(text_of(std::set<int>{}), "[]");
}

// A pass over all elements of any layout counts the bad ones and finds the first.
TEST(ScanNumbers, FindsTheFirstOfAllBadOnes) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::array values{1.0, 99.0, 100.0, 101.0, -101.0, kNan, kInf, -kInf};
  std::mt19937 random(3);
  std::vector<double> memory(200);
  for (int round = 0; round < 2000; ++round) {
    const NumberLimits limits{random() % 2 == 0, random() % 2 == 0, random() % 2 == 0, 100};
    for (double& x : memory) x = random() % 8 == 0 ? values[random() % values.size()] : 0.5;
    Layout layout = random_layout(random);
    layout.dtype = DType::float64;
    const NumberScan scan =
        scan_numbers({&memory[100], layout.dtype, layout.extents, layout.strides}, limits);
    const std::vector<index_t> all = places(layout);
    EXPECT_EQ(scan.elements, static_cast<index_t>(all.size()));
    index_t n_bad = 0;
    std::optional<std::size_t> first;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const double x = memory[static_cast<std::size_t>(100 + all[k])];
      const bool is_bad = std::isnan(x)   ? limits.nan
                          : std::isinf(x) ? limits.infinite
                                          : limits.big && std::abs(x) > 100;
      n_bad += is_bad ? 1 : 0;
      if (is_bad && !first) first = k;
    }
    ASSERT_EQ(scan.bad, n_bad) << round;
    ASSERT_EQ(static_cast<bool>(scan), n_bad > 0);
    if (!first) continue;
    const double x = memory[static_cast<std::size_t>(100 + all[*first])];
    ASSERT_EQ(scan.kind, std::isnan(x)   ? BadNumber::nan
                         : std::isinf(x) ? BadNumber::infinite
                                         : BadNumber::big);
    auto rest = static_cast<index_t>(*first);
    for (std::size_t axis = layout.extents.size(); axis-- > 0; rest /= layout.extents[axis]) {
      ASSERT_EQ(scan.index[axis], rest % layout.extents[axis]) << round;
    }
  }
}

TEST(ScanNumbers, OfComplexOnesLooksAtBothParts) {
  const auto scanned = [](std::complex<float> z) {
    const Tensor t = Tensor::from<std::complex<float>>({{0, 0}, z});
    return scan_numbers(t.view_of(), {.big = true, .largest = 10});
  };
  EXPECT_FALSE(scanned({9, 10}));
  EXPECT_EQ(scanned({9, 11}).value, "9+11j");
  EXPECT_EQ(scanned({-11, -9}).value, "-11-9j");
  EXPECT_EQ(scanned({0, 11}).index, Extents{1});
  EXPECT_FALSE(scan_numbers(Tensor::full({2}, 100).view_of(), {.big = true, .largest = 10}));
}

}  // namespace
}  // namespace palimpsest
