// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/sensitivities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/recon/coil_maps.hpp"
#include "palimpsest/cli/recon/phantom.hpp"
#include "palimpsest/cli/recon/sense.hpp"

namespace palimpsest::cli {
namespace {

using Sample = std::complex<float>;

Tensor mask_of(const std::vector<std::string>& rows) {
  Tensor mask = Tensor::zeros(
      {static_cast<index_t>(rows.size()), static_cast<index_t>(rows.front().size())}, DType::bool_);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    for (std::size_t x = 0; x < rows[y].size(); ++x) {
      mask.set<bool>({static_cast<index_t>(y), static_cast<index_t>(x)}, rows[y][x] == '#');
    }
  }
  return mask;
}

TEST(DenseCenter, IsTheRectangleAroundDc) {
  const CenterRegion c = dense_center(mask_of({"#..#..#.",  //
                                               ".#####.#",  //
                                               ".#####..",  //
                                               "..####..",  //
                                               "#.####..",  //
                                               ".......#"}));
  EXPECT_EQ(c.y, 1);
  EXPECT_EQ(c.x, 2);
  EXPECT_EQ(c.height, 4);
  EXPECT_EQ(c.width, 4);
}

TEST(DenseCenter, CoversTheWholeGridOrNothing) {
  const CenterRegion whole = dense_center(Tensor::full<bool>({7, 10}, true));
  EXPECT_EQ(whole.height, 7);
  EXPECT_EQ(whole.width, 10);
  Tensor mask = Tensor::full<bool>({8, 8}, true);
  mask.set<bool>({4, 4}, false);
  EXPECT_EQ(dense_center(mask).height, 0);
}

TEST(DenseCenter, FindsCalibrationLines) {
  Tensor mask = Tensor::zeros({32, 20}, DType::bool_);
  for (index_t y = 0; y < 32; ++y) {
    if (y % 4 == 0 || (y >= 10 && y < 22)) mask.select(0, y).fill<bool>(true);
  }
  const CenterRegion c = dense_center(mask);
  EXPECT_EQ(c.y, 10);
  EXPECT_EQ(c.height, 12);
  EXPECT_EQ(c.width, 20);
}

// The part of the true sensitivities that the estimate has: 1 when parallel.
double agreement(const Tensor& a, const Tensor& b, index_t y, index_t x) {
  std::complex<double> overlap = 0;
  for (index_t c = 0; c < a.shape(0); ++c) {
    overlap += std::conj(std::complex<double>(a.at<Sample>({c, y, x}))) *
               std::complex<double>(b.at<Sample>({c, y, x}));
  }
  return std::abs(overlap);
}

TEST(Sensitivities, AreThoseOfTheCoilsWithinTheObject) {
  const index_t ny = 64, nx = 56;
  const Tensor image = ellipse_image(modified_shepp_logan(), ny, nx);
  const Tensor maps = ring_coil_maps(6, ny, nx);
  const Tensor kspace = coil_kspace(image.to(DType::complex64), maps);
  const Tensor estimate = estimate_sensitivities(kspace, {20, 16, 24, 24});
  ASSERT_EQ(estimate.shape(), maps.shape());
  for (index_t y = 0; y < ny; ++y) {
    for (index_t x = 0; x < nx; ++x) {
      if (image.at<float>({y, x}) < 0.15F) continue;
      EXPECT_GT(agreement(maps, estimate, y, x), 0.995) << y << ", " << x;
    }
  }
}

TEST(Sensitivities, AreZeroWhereThereIsNoObject) {
  const Ellipse disc{1, 0.4, 0.4, 0, 0, 0};
  const Tensor image = ellipse_image({&disc, 1}, 64, 64);
  const Tensor kspace = coil_kspace(image.to(DType::complex64), ring_coil_maps(8, 64, 64));
  const Tensor maps = estimate_sensitivities(kspace, {20, 20, 24, 24});
  EXPECT_EQ(maps.at<Sample>({0, 2, 2}), Sample(0));
  EXPECT_NE(maps.at<Sample>({0, 32, 32}), Sample(0));
}

TEST(Sensitivities, WorkWithMoreCoilElementsThanWindows) {
  const Tensor image = ellipse_image(modified_shepp_logan(), 40, 40).to(DType::complex64);
  const Tensor true_maps = ring_coil_maps(12, 40, 40);
  const Tensor maps = estimate_sensitivities(coil_kspace(image, true_maps), {14, 14, 12, 12});
  EXPECT_GT(agreement(true_maps, maps, 20, 20), 0.99);
}

// Centres of the smallest size that is accepted see the whole object; smaller ones are refused.
TEST(Sensitivities, NoAcceptedCentreLosesAPartOfTheObject) {
  const index_t n = 64;
  const Tensor image = ellipse_image(modified_shepp_logan(), n, n);
  const Tensor true_maps = ring_coil_maps(4, n, n);
  const Tensor kspace = coil_kspace(image.to(DType::complex64), true_maps);
  for (index_t height = 6; height <= 13; ++height) {
    for (const index_t width : {height, index_t{14}, index_t{24}}) {
      const CenterRegion center{n / 2 - height / 2, n / 2 - width / 2, height, width};
      SCOPED_TRACE(std::to_string(height) + " x " + std::to_string(width));
      if (height < SensitivityOptions{}.smallest_center()) {
        EXPECT_THROW(estimate_sensitivities(kspace, center), UsageError);
        continue;
      }
      const Tensor maps = estimate_sensitivities(kspace, center);
      index_t n_wrong = 0;
      for (index_t i = 0; i < n * n; ++i) {
        if (image.at<float>({i / n, i % n}) < 0.05F) continue;
        if (agreement(true_maps, maps, i / n, i % n) < 0.94) ++n_wrong;
      }
      EXPECT_EQ(n_wrong, 0);
    }
  }
}

TEST(Sensitivities, RejectASmallOrEmptyCentre) {
  EXPECT_THAT(
      [] {
        estimate_sensitivities(Tensor::ones({2, 16, 16}, DType::complex64), {5, 5, 10, 11});
      },
      testing::ThrowsMessage<UsageError>(
          testing::AllOf(testing::HasSubstr("got 10 x 11"), testing::HasSubstr("--maps"))));
  EXPECT_THAT(
      [] {
        estimate_sensitivities(Tensor::zeros({2, 16, 16}, DType::complex64), {3, 3, 11, 11});
      },
      testing::ThrowsMessage<UsageError>(testing::HasSubstr("holds no signal")));
}

}  // namespace
}  // namespace palimpsest::cli
