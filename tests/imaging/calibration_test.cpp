// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/calibration.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
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
  // Not to where something is missing.
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

}  // namespace
}  // namespace palimpsest
