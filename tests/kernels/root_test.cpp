// SPDX-License-Identifier: Apache-2.0
// Square roots equal those of the C library, which are correctly rounded.
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/scalar_runner.hpp"
#include "kernels/targets.hpp"

namespace palimpsest::testing {
namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
void expect_rounded(const std::vector<T>& x) {
  for (const std::int64_t target : vector_targets()) {
    const TargetScope scope(target);
    const auto roots = apply<T, T>(ScalarOp::sqrt, {x});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T expected = std::sqrt(x[i]);
      ASSERT_EQ(std::isnan(roots[i]), std::isnan(expected)) << hwy::TargetName(target) << x[i];
      if (std::isnan(expected)) continue;
      ASSERT_EQ(std::bit_cast<Bits<T>>(roots[i]), std::bit_cast<Bits<T>>(expected))
          << hwy::TargetName(target) << " sqrt(" << x[i] << ")";
    }
  }
}

TEST(Roots, OfSinglesOfEveryMagnitudeAreRounded) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 4099) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  expect_rounded(x);
  std::erase_if(x, [](float value) { return !(value > 1e-25F && value < 1e30F); });
  expect_rounded(x);
}

__extension__ using Wide = unsigned __int128;

// Numbers X 2^54 or X 2^55 that are c below the square of an odd 54-bit integer, the midpoint
// between two numbers of 53 bits. Only c = 1, 9, .. and -7, -15, .. are possible.
std::vector<double> next_to_squares_of_middles(std::int64_t c) {
  std::vector<double> x;
  for (const int k : {54, 55}) {
    const auto rest = [k](std::uint64_t v) { return v & ((std::uint64_t{1} << k) - 1); };
    const auto square = static_cast<std::uint64_t>(c);
    std::uint64_t root = 1;
    for (int j = 3; j < k; ++j) {
      const bool differs = ((root * root - square) >> j & 1) != 0;
      if (differs) root += std::uint64_t{1} << (j - 1);
    }
    const std::uint64_t half = std::uint64_t{1} << (k - 1);
    for (const std::uint64_t m :
         {rest(root), rest(0 - root), rest(root + half), rest(half - root)}) {
      if (m >> 53 != 1) continue;
      const auto wide = static_cast<Wide>(m);
      const Wide least = wide * wide - static_cast<Wide>(c);
      const auto integer = static_cast<std::uint64_t>(least >> k);
      if (integer >> 52 != 1) continue;
      x.push_back(std::ldexp(static_cast<double>(integer), k - 106));
    }
  }
  return x;
}

TEST(Roots, NextToTheMiddleOfTwoNumbersAreRounded) {
  std::vector<double> x;
  for (std::int64_t c = -4007; c < 4000; c += 8) {
    for (const double hard : next_to_squares_of_middles(c)) {
      for (const int scale : {0, 2, 1000, -800, -1020}) x.push_back(std::ldexp(hard, scale));
    }
  }
  EXPECT_GT(x.size(), 5000U);
  for (const double next : {1 + 0x1p-52, 4 - 0x1p-51, 1.0, 1 - 0x1p-53}) x.push_back(next);
  expect_rounded(x);
}

// Blocks have 8 vectors of up to 16 numbers.
template <class T>
void expect_specials_anywhere() {
  using Limits = std::numeric_limits<T>;
  for (const T special : {T{0}, -T{0}, T{-1}, Limits::min(), Limits::denorm_min(), Limits::max(),
                          Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    for (std::size_t place = 0; place < 128; place += 5) {
      std::vector<T> x;
      for (int i = 0; i < 150; ++i) x.push_back(T{1.25} + static_cast<T>(i));
      x[place] = special;
      expect_rounded(x);
    }
  }
}
TEST(Roots, OfSpecialValuesAreThoseOfTheLibraryAtEveryPlace) {
  expect_specials_anywhere<float>();
  expect_specials_anywhere<double>();
}

}  // namespace
}  // namespace palimpsest::testing
