// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <set>
#include <vector>

namespace palimpsest {
namespace {

constexpr RandomKey kKey{.seed = 42, .stream = 7};

using Fill = void (*)(RandomKey, const MutableView&, std::uint64_t);

template <class T>
std::vector<T> drawn(Fill fill, index_t n, std::uint64_t first = 0, RandomKey key = kKey) {
  std::vector<T> values(static_cast<std::size_t>(n));
  const Extents extents{n};
  const Strides strides{1};
  fill(key, {values.data(), dtype_of<T>, extents, strides}, first);
  return values;
}

TEST(Random, ElementsDependOnKeyAndPositionAlone) {
  const auto all = drawn<double>(random_normal, 100);
  const auto tail = drawn<double>(random_normal, 60, 40);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), all.begin() + 40));
  EXPECT_EQ(drawn<double>(random_normal, 100), all);
  EXPECT_NE(drawn<double>(random_normal, 100, 0, {42, 8}), all);
  EXPECT_NE(drawn<double>(random_normal, 100, 0, {43, 7}), all);
}

TEST(Random, FillsStridedViewsRowMajor) {
  const auto expected = drawn<float>(random_uniform, 12);
  std::vector<float> values(12);
  const Extents extents{3, 4};
  const Strides transposed{1, 3}, reversed{-4, -1};
  random_uniform(kKey, {values.data(), DType::float32, extents, transposed});
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(values[i / 4 + 3 * (i % 4)], expected[i]);
  random_uniform(kKey, {values.data() + 11, DType::float32, extents, reversed});
  EXPECT_TRUE(std::equal(values.rbegin(), values.rend(), expected.begin()));
}

TEST(Random, FillsScalarsAndNothing) {
  double one = -1;
  random_uniform(kKey, {&one, DType::float64, {}, {}}, 5);
  EXPECT_EQ(one, drawn<double>(random_uniform, 6)[5]);
  EXPECT_TRUE(drawn<double>(random_normal, 0).empty());
}

TEST(Random, NormalNumbersHaveZeroMeanAndUnitVariance) {
  constexpr index_t kCount = 40000;
  double sum = 0, squares = 0;
  for (double x : drawn<double>(random_normal, kCount)) {
    sum += x;
    squares += x * x;
  }
  // Five standard deviations of the mean and of the mean square.
  EXPECT_LT(std::abs(sum / kCount), 5 / std::sqrt(double{kCount}));
  EXPECT_LT(std::abs(squares / kCount - 1), 5 * std::sqrt(2.0 / kCount));
  std::complex<double> total = 0, pseudo = 0;
  squares = 0;
  for (const auto& z : drawn<std::complex<double>>(random_normal, kCount)) {
    total += z;
    pseudo += z * z;
    squares += std::norm(z);
  }
  EXPECT_LT(std::abs(total) / kCount, 5 / std::sqrt(double{kCount}));
  EXPECT_LT(std::abs(pseudo) / kCount, 5 * std::sqrt(2.0 / kCount)) << "parts are independent";
  EXPECT_LT(std::abs(squares / kCount - 1), 5 / std::sqrt(double{kCount}));
}

TEST(Random, UniformNumbersFillTheUnitInterval) {
  constexpr index_t kCount = 40000;
  double sum = 0;
  for (float x : drawn<float>(random_uniform, kCount)) {
    EXPECT_TRUE(x >= 0 && x < 1) << x;
    sum += x;
  }
  EXPECT_LT(std::abs(sum / kCount - 0.5), 5 / std::sqrt(12.0 * kCount));
}

TEST(Random, WordsDoNotRepeat) {
  std::set<std::uint64_t> words;
  for (std::uint64_t i = 0; i < 1000; ++i) words.insert(random_bits(kKey, i));
  EXPECT_EQ(words.size(), 1000u);
}

TEST(Random, FollowsThePublishedGenerator) {
  // Philox 4x32-10, the known answers of its authors for counter and key of zeros and of ones.
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  EXPECT_EQ(random_bits({0, 0}, 0), 0xe169c58d6627e8d5);
  EXPECT_EQ(random_bits({kOnes, kOnes}, kOnes), 0x41c83b0e408f276d);
}

}  // namespace
}  // namespace palimpsest
