// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::head_kspace;
using testing::Sample;
using Complex = std::complex<double>;

// A head seen by coils: (C, y, x).
Tensor coil_images(const Tensor& image, const Tensor& maps) {
  std::vector<Sample> y = maps.to_vector<Sample>();
  const std::vector<float> x = image.to_vector<float>();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= x[i % x.size()];
  return Tensor::from(y, maps.shape());
}

// The smallest |s^H t| where the image is bright.
double worst_agreement(const Tensor& maps, const Tensor& truth, const Tensor& image) {
  double worst = 2;
  for (index_t y = 0; y < image.shape(0); ++y) {
    for (index_t x = 0; x < image.shape(1); ++x) {
      if (image.at<float>({y, x}) < 0.15F) continue;
      Complex overlap = 0;
      for (index_t c = 0; c < truth.shape(0); ++c) {
        overlap += std::conj(Complex(maps.at<Sample>({0, c, y, x}))) *
                   Complex(truth.at<Sample>({c, y, x}));
      }
      worst = std::min(worst, std::abs(overlap));
    }
  }
  return worst;
}

TEST(Walsh, MapsAreThoseOfTheCoils) {
  const Tensor image = ellipse_image(modified_shepp_logan(), 48, 44);
  const Tensor truth = ring_coil_maps(5, 48, 44), y = coil_images(image, truth);
  const Tensor maps = walsh(y);
  ASSERT_EQ(maps.shape(), (Extents{1, 5, 48, 44}));
  EXPECT_GT(worst_agreement(maps, truth, image), 0.98);
  // A block of one point averages nothing.
  EXPECT_GT(worst_agreement(walsh(y, {.block = 1}), truth, image), 0.99999);
  // Maps are 0 where the image is 0.
  EXPECT_EQ(maps.at<Sample>({0, 2, 0, 0}), Sample(0));
  // The combination has the magnitude of the image.
  const Tensor combined = adaptive_combine(y, maps);
  ASSERT_EQ(combined.shape(), (Extents{1, 48, 44}));
  for (index_t x = 10; x < 34; ++x) {
    EXPECT_NEAR(std::abs(combined.at<Sample>({0, 24, x})), image.at<float>({24, x}), 0.02);
  }
}

// Two points of one coil each in a block of both: the covariance is diagonal.
TEST(Walsh, SetsFollowTheEnergyInTheBlock) {
  const std::vector<Sample> y = {{3, 0}, {0, 0}, {0, 0}, {0, 2}};  // coil 0 at 0, coil 1 at 1
  const Tensor maps = walsh(Tensor::from(y, Extents{2, 1, 2}), {.block = 3, .sets = 2});
  for (index_t x = 0; x < 2; ++x) {
    EXPECT_NEAR(std::abs(maps.at<Sample>({0, 0, 0, x})), 1, 1e-6);
    EXPECT_NEAR(std::abs(maps.at<Sample>({1, 1, 0, x})), 1, 1e-6);
    EXPECT_NEAR(std::abs(maps.at<Sample>({0, 1, 0, x})), 0, 1e-6);
  }
  EXPECT_NEAR(std::arg(maps.at<Sample>({0, 0, 0, 0})), 0, 1e-6);
}

TEST(Walsh, TakesVolumes) {
  const Tensor image = ellipse_image(modified_shepp_logan(), 20, 18);
  const Tensor truth = ring_coil_maps(3, 20, 18), y = coil_images(image, truth);
  Tensor volume = Tensor::empty({3, 4, 20, 18}, DType::complex64);
  for (index_t z = 0; z < 4; ++z) volume.select(1, z).copy_from(y);
  const Tensor maps = walsh(volume, {.block = 3});
  // All planes equal the single plane.
  EXPECT_TRUE(allclose(maps.select(2, 2), walsh(y, {.block = 3}), 1e-4, 1e-5));
}

TEST(DirectMaps, AreUnitLengthAndSmooth) {
  const Tensor image = ellipse_image(modified_shepp_logan(), 48, 44);
  const Tensor truth = ring_coil_maps(5, 48, 44);
  const Tensor maps = direct_maps(head_kspace(5, 48, 44));
  ASSERT_EQ(maps.shape(), (Extents{1, 5, 48, 44}));
  EXPECT_GT(worst_agreement(maps, truth, image), 0.97);
  for (index_t y = 0; y < 48; y += 5) {
    double norm = 0;
    for (index_t c = 0; c < 5; ++c) norm += std::norm(Complex(maps.at<Sample>({0, c, y, 20})));
    EXPECT_NEAR(norm, 1, 1e-5);
  }
}

TEST(ApplyMask, KeepsTheSupport) {
  const Tensor maps = direct_maps(head_kspace(3, 24, 24));
  Tensor support = Tensor::zeros({24, 24}, DType::bool_);
  support.narrow(0, 4, 8).fill<bool>(true);
  const Tensor masked = apply_mask(maps, support);
  EXPECT_EQ(masked.at<Sample>({0, 2, 3, 5}), Sample(0));
  EXPECT_EQ(masked.at<Sample>({0, 2, 4, 5}), maps.at<Sample>({0, 2, 4, 5}));
  EXPECT_NE(maps.at<Sample>({0, 2, 3, 5}), Sample(0));
  expect_error<ShapeError>(
      [&] {
        apply_mask(maps, Tensor::zeros({24, 23}, DType::bool_));
      },
      "(24, 23)");
}

TEST(LocalMaps, NameWhatIsWrong) {
  const Tensor y = Tensor::ones({2, 8, 8}, DType::complex64);
  expect_error<ValueError>([&] { walsh(y, {.block = 4}); }, "block: got 4");
  expect_error<ValueError>([&] { walsh(y, {.sets = 3}); }, "sets: got 3");
  expect_error<ShapeError>([&] { walsh(y.select(0, 0)); }, "(coil, y, x)");
  expect_error<DTypeError>([] { walsh(Tensor::ones({2, 8, 8})); }, "complex64");
  Tensor bad = y.clone();
  bad.set<Sample>({1, 2, 3}, Sample(0, std::numeric_limits<float>::infinity()));
  expect_error<ValueError>([&] { walsh(bad); },
                           "NaN or infinite values: got 1 of them, the first at (1, 2, 3)");
  expect_error<ValueError>(
      [] {
        direct_maps(Tensor::zeros({2, 8, 8}, DType::complex64));
      },
      "no calibration area");
  expect_error<ShapeError>([&] { adaptive_combine(y, y); }, "(set, ..)");
}

}  // namespace
}  // namespace palimpsest
