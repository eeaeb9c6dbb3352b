// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/quality/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Sample = std::complex<float>;

QualityOptions whole(const Tensor& like) {
  return {.mask = Tensor::full<bool>(like.shape(), true)};
}

TEST(Quality, OfTheExampleInTheDefinition) {
  const Tensor r = Tensor::from<float>({0, 1, 2, 3}, Extents{1, 4});
  const Tensor x = Tensor::from<float>({0, 1, 2, 2}, Extents{1, 4});
  QualityOptions options = whole(r);
  EXPECT_NEAR(image_quality(r, x, options).nrmse, 0.199205, 1e-6);
  EXPECT_NEAR(image_quality(r, x, options).factor.real(), 1.222222, 1e-6);
  options.fit = false;
  const Quality plain = image_quality(r, x, options);
  EXPECT_EQ(plain.factor, 1.0);
  EXPECT_NEAR(plain.nrmse, 0.267261, 1e-6);
  EXPECT_NEAR(plain.psnr_db, 15.563, 1e-3);
}

TEST(Quality, FitsARealOrAComplexFactor) {
  const Tensor r = Tensor::from<Sample>({{1, 0}, {0, 2}, {-3, 0}, {4, 0}}, Extents{2, 2});
  Tensor turned = r.clone();
  auto* values = turned.mutable_data<Sample>();
  for (index_t i = 0; i < 4; ++i) values[i] *= Sample(0, 2);
  const Quality magnitudes = image_quality(r, turned, whole(r));
  EXPECT_NEAR(magnitudes.factor.real(), 0.5, 1e-7);
  EXPECT_EQ(magnitudes.factor.imag(), 0);
  EXPECT_NEAR(magnitudes.nrmse, 0, 1e-7);
  EXPECT_NEAR(magnitudes.ssim, 1, 1e-6);
  QualityOptions complex = whole(r);
  complex.complex = true;
  const Quality all = image_quality(r, turned, complex);
  EXPECT_NEAR(std::abs(all.factor - std::complex<double>(0, -0.5)), 0, 1e-7);
  EXPECT_NEAR(all.nrmse, 0, 1e-7);
  // Equal magnitudes with other phases are not equal for it.
  EXPECT_GT(image_quality(r, magnitudes.factor == 0.0 ? r : r.flip(Axes{1}), complex).nrmse, 0.1);
}

TEST(Quality, CountsPointsAboveFivePercentOfThe99thPercentile) {
  Tensor r = Tensor::zeros({10, 10}, DType::float32);
  for (index_t i = 0; i < 10; ++i) r.set<float>({0, i}, 1.0F);
  r.set<float>({5, 5}, 0.049F);
  r.set<float>({6, 6}, 0.051F);
  EXPECT_EQ(image_quality(r, r).points, 11);
  // An error outside of the mask does not count.
  Tensor x = r.clone();
  x.set<float>({9, 9}, 0.5F);
  EXPECT_NEAR(image_quality(r, x).nrmse, 0, 1e-7);
  EXPECT_GT(image_quality(r, x, whole(r)).nrmse, 0.1);
}

TEST(Quality, AnImageOfZerosIsAllError) {
  const Tensor r = Tensor::ones({3, 3}, DType::float32);
  const Quality zero = image_quality(r, Tensor::zeros({3, 3}, DType::float32));
  EXPECT_EQ(zero.nrmse, 1);
  EXPECT_EQ(zero.factor, 1.0);
  EXPECT_EQ(image_quality(r, r).psnr_db, std::numeric_limits<double>::infinity());
}

TEST(Quality, RefusesWhatCannotBeCompared) {
  const Tensor r = Tensor::ones({2, 2}, DType::float32);
  expect_error<ShapeError>([&] { image_quality(r, Tensor::ones({2, 3})); }, "differ in shape");
  expect_error<ShapeError>([&] { image_quality(Tensor::ones({4}), Tensor::ones({4})); },
                           "(.., y, x)");
  expect_error<ValueError>([&] { image_quality(Tensor::zeros({2, 2}), r); }, "0 everywhere");
  expect_error<ValueError>(
      [&] {
        image_quality(r, r, {.mask = Tensor::full<bool>({2, 2}, false)});
      },
      "no points");
  expect_error<ShapeError>(
      [&] {
        image_quality(r, r, {.mask = Tensor::full<bool>({2, 1}, true)});
      },
      "[mask]");
  expect_error<DTypeError>([&] { image_quality(r, r, {.mask = r}); }, "expected bool");
}

// The definition, summed directly at one point.
double ssim_at(const Tensor& r, const Tensor& x, index_t y0, index_t x0, double range) {
  const index_t ny = r.shape(0), nx = r.shape(1);
  double weights[11], sum = 0;
  for (int i = 0; i < 11; ++i) sum += weights[i] = std::exp(-(i - 5) * (i - 5) / (2 * 1.5 * 1.5));
  const auto mirror = [](index_t i, index_t n) {
    if (i < 0) i = -1 - i;
    return i >= n ? 2 * n - 1 - i : i;
  };
  double mr = 0, mx = 0, rr = 0, xx = 0, rx = 0;
  for (index_t u = -5; u <= 5; ++u) {
    for (index_t v = -5; v <= 5; ++v) {
      const double w = weights[u + 5] * weights[v + 5] / (sum * sum);
      const double a = double{r.at<float>({mirror(y0 + u, ny), mirror(x0 + v, nx)})};
      const double b = double{x.at<float>({mirror(y0 + u, ny), mirror(x0 + v, nx)})};
      mr += w * a, mx += w * b, rr += w * a * a, xx += w * b * b, rx += w * a * b;
    }
  }
  const double c1 = 1e-4 * range * range, c2 = 9e-4 * range * range;
  return (2 * mr * mx + c1) * (2 * (rx - mr * mx) + c2) /
         ((mr * mr + mx * mx + c1) * (rr - mr * mr + xx - mx * mx + c2));
}

TEST(Ssim, IsTheDefinitionAtEveryPointSliceBySlice) {
  const Tensor r = Tensor::random_uniform({2, 14, 9}, DType::float32, {1, 1});
  const Tensor x = Tensor::random_uniform({2, 14, 9}, DType::float32, {1, 2});
  const Tensor map = ssim_map(r, x);
  double range = 0;
  for (const float v : r.to_vector<float>()) range = std::max(range, double{v});
  for (index_t z = 0; z < 2; ++z) {
    for (index_t y = 0; y < 14; ++y) {
      for (index_t k = 0; k < 9; ++k) {
        ASSERT_NEAR(double{map.at<float>({z, y, k})},
                    ssim_at(r.select(0, z), x.select(0, z), y, k, range), 1e-5);
      }
    }
  }
  EXPECT_EQ(ssim_map(r, r).at<float>({1, 3, 3}), 1.0F);
  expect_error<ValueError>(
      [&] {
        ssim_map(Tensor::zeros({2, 2}), Tensor::zeros({2, 2}));
      },
      "0 everywhere");
}

}  // namespace
}  // namespace palimpsest
