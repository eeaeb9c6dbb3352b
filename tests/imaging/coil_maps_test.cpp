// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/coil_maps.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Sample = std::complex<float>;

TEST(RingCoilMaps, HaveUnitEnergyEverywhere) {
  const Tensor maps = ring_coil_maps(8, 20, 30);
  ASSERT_EQ(maps.shape(), (Extents{8, 20, 30}));
  for (index_t y = 0; y < 20; ++y) {
    for (index_t x = 0; x < 30; ++x) {
      double energy = 0;
      for (index_t c = 0; c < 8; ++c) {
        energy += std::norm(std::complex<double>(maps.at<Sample>({c, y, x})));
      }
      EXPECT_NEAR(energy, 1, 1e-5);
    }
  }
}

TEST(RingCoilMaps, EachCoilSeesItsOwnSideBest) {
  const Tensor maps = ring_coil_maps(4, 32, 32);
  EXPECT_GT(std::abs(maps.at<Sample>({0, 16, 31})), 3 * std::abs(maps.at<Sample>({2, 16, 31})));
  EXPECT_GT(std::abs(maps.at<Sample>({1, 31, 16})), 3 * std::abs(maps.at<Sample>({3, 31, 16})));
}

TEST(RingCoilMaps, AreSmooth) {
  const Tensor maps = ring_coil_maps(8, 64, 64);
  for (index_t x = 1; x < 64; ++x) {
    EXPECT_LT(std::abs(maps.at<Sample>({3, 32, x}) - maps.at<Sample>({3, 32, x - 1})), 0.1F);
  }
}

TEST(RingCoilMaps, RejectBadArguments) {
  expect_error<ValueError>([] { ring_coil_maps(0, 8, 8); }, "at least one coil");
  expect_error<ValueError>([] { ring_coil_maps(4, 8, 8, 1.0); }, "inside the field of view");
}

}  // namespace
}  // namespace palimpsest
