// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/scale.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::Sample;

TEST(Scale, IsThePercentileUnlessTheLargestIsFarAboveIt) {
  EXPECT_EQ((Brightness{1, 3, 4}).scale(), 3);
  EXPECT_EQ((Brightness{1, 3, 7}).scale(), 7);
  EXPECT_EQ((Brightness{0, 0, 0}).scale(), 1);
}

TEST(Scale, RanksAreThoseOfTheSortedMagnitudes) {
  // Two coils of 3 and 4 times 0 .. 9: magnitudes 0, 5, .. 45.
  std::vector<Sample> values;
  for (const float factor : {3.0f, 4.0f}) {
    for (int i = 0; i < 10; ++i) values.emplace_back(0, factor * static_cast<float>((7 * i) % 10));
  }
  const Brightness b = brightness(Tensor::from(values, Extents{2, 2, 5}));
  EXPECT_FLOAT_EQ(static_cast<float>(b.median), 25);
  EXPECT_FLOAT_EQ(static_cast<float>(b.p90), 45);
  EXPECT_FLOAT_EQ(static_cast<float>(b.largest), 45);
}

TEST(Scale, OfMagnitudesIsThatOfTheirImage) {
  const Tensor image = Tensor::random_normal({7, 9}, DType::complex64, {3, 0});
  Tensor magnitudes = rss_image(image.unsqueeze(0)).clone();
  const Brightness found = brightness_of_magnitudes(magnitudes);
  const Brightness expected = brightness(image.unsqueeze(0));
  EXPECT_EQ(found.median, expected.median);
  EXPECT_EQ(found.p90, expected.p90);
  EXPECT_EQ(found.largest, expected.largest);
  Tensor wide = magnitudes.to(DType::float64), empty = Tensor::empty({0}, DType::float32);
  Tensor columns = magnitudes.transpose(0, 1);
  expect_error<DTypeError>([&] { brightness_of_magnitudes(wide); }, "got float64");
  expect_error<ShapeError>([&] { brightness_of_magnitudes(empty); }, "got the shape (0,)");
  expect_error<ShapeError>([&] { brightness_of_magnitudes(columns); }, "expected a dense array");
}

TEST(Scale, OfTheWholeGridItIsThatOfTheImage) {
  const Tensor image = ellipse_image(modified_shepp_logan(), 20, 24);
  const Tensor maps = ring_coil_maps(3, 20, 24);
  const Tensor kspace = testing::coil_kspace(image, maps);
  const CalibrationArea area = brightness_area(kspace);
  EXPECT_EQ(area.extent, (std::array<index_t, 3>{1, 20, 24}));
  const Brightness found = brightness_of(kspace, area);
  std::vector<Sample> coils = maps.to_vector<Sample>();
  const std::vector<float> pixels = image.to_vector<float>();
  for (std::size_t i = 0; i < coils.size(); ++i) coils[i] *= pixels[i % pixels.size()];
  const Brightness direct = brightness(Tensor::from(coils, maps.shape()));
  EXPECT_NEAR(found.p90, direct.p90, 1e-5);
  EXPECT_NEAR(found.largest, direct.largest, 1e-5);
}

TEST(Scale, OfAPointItIsThatPoint) {
  // A constant image of 2: one sample of 2 sqrt(n) in the middle of a grid that is not square.
  Tensor kspace = Tensor::zeros({1, 4, 6, 10}, DType::complex64);
  kspace.set<Sample>({0, 2, 3, 5}, Sample(0, 2 * std::sqrt(240.0f)));
  const Brightness found = brightness_of(kspace, {{2, 3, 5}, {1, 1, 1}});
  EXPECT_NEAR(found.p90, 2, 1e-6);
  EXPECT_NEAR(found.median, 2, 1e-6);
}

TEST(Scale, LargeAreasAreCutToTheirMiddle) {
  const CalibrationArea large{{0, 10, 20}, {1, 50, 33}}, small{{0, 19, 20}, {1, 32, 32}};
  const Tensor kspace = Tensor::random_normal({2, 64, 64}, DType::complex64, {1});
  EXPECT_EQ(brightness_of(kspace, large).p90, brightness_of(kspace, small).p90);
  EXPECT_EQ(brightness_bytes(large), 32 * 32 * 40 + 32 * 32 * 16);
}

TEST(Scale, RootSumOfSquaresIsOverCoils) {
  const Tensor image = rss_image(
      Tensor::from(std::vector<Sample>{{3, 0}, {0, 1}, {0, 4}, {1, 1}}, Extents{2, 1, 2}));
  EXPECT_EQ(image.shape(), (Extents{1, 2}));
  EXPECT_FLOAT_EQ(image.to_vector<float>()[0], 5);
  EXPECT_FLOAT_EQ(image.to_vector<float>()[1], std::sqrt(3.0f));
  expect_error<DTypeError>([] { rss_image(Tensor::zeros({2, 2}, DType::float32)); }, "complex64");
}

TEST(Scale, EmptyAreasAreRefused) {
  const Tensor kspace = Tensor::zeros({1, 8, 8}, DType::complex64);
  expect_error<ValueError>([&] { brightness_of(kspace, brightness_area(kspace)); }, "empty");
  expect_error<ShapeError>([] { brightness(Tensor::zeros({0, 3}, DType::complex64)); }, "empty");
}

}  // namespace
}  // namespace palimpsest
