// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/calibration.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <numbers>
#include <vector>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::mask_of;
using testing::Sample;

TEST(CalibrationArea, GrowsAxisByAxisAroundTheMiddle) {
  const CalibrationArea a = calibration_area(mask_of({"#..#..#.",  //
                                                      ".#####.#",  //
                                                      ".#####..",  //
                                                      "..####..",  //
                                                      "#.####..",  //
                                                      ".......#"}));
  // Middle (2, 3); x to 2 .. 5 in rows 1 .. 4.
  EXPECT_EQ(a, (CalibrationArea{{0, 1, 2}, {1, 4, 4}}));
}

TEST(CalibrationArea, StopsAtItsLargestExtentAndAtTheGrid) {
  const Tensor all = Tensor::full<bool>({7, 40}, true);
  EXPECT_EQ(calibration_area(all), (CalibrationArea{{0, 0, 8}, {1, 7, 24}}));
  EXPECT_EQ(calibration_area(all, 5), (CalibrationArea{{0, 1, 17}, {1, 5, 5}}));
  const Tensor volume = Tensor::full<bool>({1, 30, 9}, true);
  EXPECT_EQ(calibration_area(volume), (CalibrationArea{{0, 3, 0}, {1, 24, 9}}));
}

TEST(CalibrationArea, LiesWhereTheMeasuredHeadHasIt) {
  Tensor mask = Tensor::zeros({230, 180}, DType::bool_);
  mask.narrow(0, 103, 24).narrow(1, 78, 24).fill<bool>(true);
  EXPECT_EQ(calibration_area(mask), (CalibrationArea{{0, 103, 78}, {1, 24, 24}}));
}

TEST(CalibrationArea, IsEmptyWhereTheMiddleIsMissing) {
  Tensor mask = Tensor::full<bool>({8, 8}, true);
  mask.set<bool>({3, 3}, false);
  EXPECT_EQ(calibration_area(mask).extent, (std::array<index_t, 3>{0, 0, 0}));
}

TEST(CalibrationArea, FindsCalibrationLines) {
  Tensor mask = Tensor::zeros({32, 20}, DType::bool_);
  for (index_t y = 0; y < 32; ++y) {
    if (y % 4 == 0 || (y >= 10 && y < 22)) mask.select(0, y).fill<bool>(true);
  }
  EXPECT_EQ(calibration_area(mask), (CalibrationArea{{0, 10, 0}, {1, 12, 20}}));
}

TEST(CalibrationArea, MovesAlongTheReadoutToTheMostEnergy) {
  Tensor kspace = Tensor::full<Sample>({2, 12, 40}, Sample(1e-3F));
  kspace.narrow(1, 4, 4).narrow(2, 3, 6).fill<Sample>(Sample(2, 1));
  const CalibrationArea a = calibration_area_of(kspace, 6);
  EXPECT_EQ(a, (CalibrationArea{{0, 3, 3}, {1, 6, 6}}));
  EXPECT_EQ(calibration_samples(kspace, a).shape(), (Extents{2, 6, 6}));
  // Does not grow to where samples are missing.
  kspace.narrow(1, 4, 1).narrow(2, 5, 1).fill<Sample>(Sample(0));
  EXPECT_EQ(calibration_area_of(kspace, 6).start[2], 6);
}

TEST(CalibrationArea, NamesWhatDoesNotFit) {
  expect_error<ShapeError>([] { calibration_area(Tensor::full<bool>({4}, true)); }, "(y, x)");
  expect_error<ShapeError>([] { calibration_area(Tensor::full<bool>({0, 4}, true)); }, "(0, 4)");
  expect_error<DTypeError>([] { calibration_area(Tensor::ones({4, 4})); }, "bool");
  expect_error<ShapeError>(
      [] {
        calibration_area_of(Tensor::ones({4, 4}, DType::complex64));
      },
      "(coil, y, x)");
}

// Radial samples of a head, by exact sums, give the calibration block of its Cartesian k-space.
TEST(CalibrationFrom, RadialSamplesGiveTheGrid) {
  const index_t n = 32, size = 12;
  const Tensor k = radial_trajectory({.spokes = 50, .samples = 2 * n});
  const Tensor image = ellipse_image(modified_shepp_logan(), n, n), maps = ring_coil_maps(2, n, n);
  const std::vector<Sample> s = maps.to_vector<Sample>();
  const std::vector<float> x = image.to_vector<float>();
  std::vector<Sample> y;
  for (std::size_t c = 0; c < 2; ++c) {
    for (index_t p = 0; p < 50 * 2 * n; ++p) {
      const index_t spoke = p / (2 * n), sample = p % (2 * n);
      const double kx = static_cast<double>(k.at<float>({spoke, sample, 0}));
      const double ky = static_cast<double>(k.at<float>({spoke, sample, 1}));
      std::complex<double> sum = 0;
      // Samples outside the block are left out.
      for (index_t i = 0; i < n * n && kx * kx + ky * ky < 50; ++i) {
        const double turn =
            (kx * static_cast<double>(i % n - n / 2) + ky * static_cast<double>(i / n - n / 2)) / n;
        sum += static_cast<double>(x[static_cast<std::size_t>(i)]) *
               std::complex<double>(s[c * n * n + static_cast<std::size_t>(i)]) *
               std::polar(1.0 / n, -2 * std::numbers::pi * turn);
      }
      y.emplace_back(sum);
    }
  }
  const Tensor block = calibration_from(Tensor::from(y, Extents{2, 50, 2 * n}), k, size);
  ASSERT_EQ(block.shape(), (Extents{2, size, size}));
  const Tensor exact = testing::coil_kspace(image, maps);
  // Corners of the block are not measured.
  double error = 0, energy = 0;
  for (index_t c = 0; c < 2; ++c) {
    for (index_t v = -4; v <= 4; ++v) {
      for (index_t u = -4; u <= 4; ++u) {
        const std::complex<double> a(block.at<Sample>({c, size / 2 + v, size / 2 + u}));
        const std::complex<double> b(exact.at<Sample>({c, n / 2 + v, n / 2 + u}));
        error += std::norm(a - b);
        energy += std::norm(b);
      }
    }
  }
  EXPECT_LT(std::sqrt(error / energy), 0.05);
}

TEST(CalibrationFrom, NamesWhatIsWrong) {
  const Tensor k = radial_trajectory({.spokes = 4, .samples = 16});
  const Tensor y = Tensor::ones({2, 4, 16}, DType::complex64);
  expect_error<ShapeError>([&] { calibration_from(y.narrow(1, 0, 3), k); }, "(2, 3, 16)");
  expect_error<ValueError>([&] { calibration_from(y, k, 1); }, "size: got 1");
  expect_error<ValueError>(
      [&] {
        calibration_from(y.narrow(1, 0, 1).narrow(2, 0, 2), k.narrow(0, 0, 1).narrow(1, 0, 2), 4);
      },
      "too few samples in the middle");
}

}  // namespace
}  // namespace palimpsest
