// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/phantom.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
double sum(const Tensor& image) {
  double total = 0;
  for (const float v : image.to_vector<float>()) total += static_cast<double>(v);
  return total;
}

TEST(Phantom, AnEllipseHasItsArea) {
  const Ellipse tilted{2.0, 0.5, 0.25, 0.1, -0.2, 30};
  const Tensor image = ellipse_image({&tilted, 1}, 96, 128);
  const double pixel = 2.0 / 96 * 2.0 / 128;
  EXPECT_NEAR(sum(image) * pixel, 2 * std::numbers::pi * 0.5 * 0.25, 1e-4);
}

TEST(Phantom, AnglesTurnCounterclockwiseWithYUp) {
  const Ellipse tilted{1.0, 0.8, 0.05, 0, 0, 45};
  const Tensor image = ellipse_image({&tilted, 1}, 64, 64);
  // Above and to the right of the centre: a small row index, a large column index.
  EXPECT_GT(image.at<float>({20, 43}), 0.9F);
  EXPECT_EQ(image.at<float>({20, 20}), 0.0F);
}

TEST(Phantom, SheppLoganHasTheKnownContrasts) {
  const Tensor image = ellipse_image(modified_shepp_logan(), 128, 128);
  EXPECT_EQ(image.shape(), (Extents{128, 128}));
  EXPECT_NEAR(image.at<float>({64, 64}), 0.2F, 1e-5);  // brain
  EXPECT_NEAR(image.at<float>({7, 64}), 1.0F, 1e-5);   // skull, at the top
  EXPECT_NEAR(image.at<float>({64, 50}), 0.0F, 1e-5);  // a ventricle
  EXPECT_NEAR(image.at<float>({0, 0}), 0.0F, 1e-6);    // air
}

TEST(Phantom, ALargerImageAveragesToTheSmallerOne) {
  const Tensor small = ellipse_image(modified_shepp_logan(), 32, 32);
  const Tensor large = ellipse_image(modified_shepp_logan(), 128, 128);
  for (index_t y = 0; y < 32; ++y) {
    for (index_t x = 0; x < 32; ++x) {
      EXPECT_NEAR(sum(large.narrow(0, 4 * y, 4).narrow(1, 4 * x, 4)) / 16,
                  static_cast<double>(small.at<float>({y, x})), 0.02);
    }
  }
}

TEST(Phantom, RejectsAnEmptySize) {
  expect_error<ValueError>([] { ellipse_image(modified_shepp_logan(), 0, 8); },
                           "the size is empty");
}

}  // namespace
}  // namespace palimpsest
