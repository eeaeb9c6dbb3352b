// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/image.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Sample = std::complex<float>;

TEST(Image, PartsOfComplexAndReal) {
  const Tensor x = Tensor::from<Sample>({{3, 4}, {0, -2}, {-1, 0}});
  EXPECT_EQ(magnitude(x).to_vector<float>(), (std::vector<float>{5, 2, 1}));
  EXPECT_EQ(part_of(x, ImagePart::real).to_vector<float>(), (std::vector<float>{3, 0, -1}));
  EXPECT_EQ(part_of(x, ImagePart::imag).to_vector<float>(), (std::vector<float>{4, -2, 0}));
  const auto phase = part_of(x, ImagePart::phase).to_vector<float>();
  EXPECT_NEAR(phase[1], -std::numbers::pi / 2, 1e-6);
  EXPECT_NEAR(phase[2], std::numbers::pi, 1e-6);
  const Tensor real = Tensor::from<double>({-1.5, 2});
  EXPECT_EQ(magnitude(real).to_vector<float>(), (std::vector<float>{1.5F, 2}));
  EXPECT_EQ(part_of(real, ImagePart::real).to_vector<float>(), (std::vector<float>{-1.5F, 2}));
  EXPECT_EQ(part_of(real, ImagePart::imag).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(parse_image_part("phase"), ImagePart::phase);
  expect_error<ValueError>([] { parse_image_part("phases"); }, "magnitude, phase");
}

TEST(Image, CropAndPadKeepTheCentreElement) {
  for (const index_t small : {4, 5}) {
    for (const index_t large : {8, 9}) {
      Tensor x = Tensor::zeros({small, small}, DType::float32);
      x.set<float>({small / 2, small / 2}, 1);
      const Tensor padded = center_pad(x, large, large);
      EXPECT_EQ(padded.at<float>({large / 2, large / 2}), 1.0F);
      EXPECT_TRUE(equal(center_crop(padded, small, small).contiguous(), x));
    }
  }
  EXPECT_EQ(center_crop(Tensor::zeros({3, 4}), 9, 2).shape(), (Extents{3, 2}));
}

TEST(Image, QuantilesAreValuesOfTheImage) {
  const Tensor x = Tensor::from<float>({5, 1, 4, 2, 3});
  EXPECT_EQ(quantile(x, 0), 1);
  EXPECT_EQ(quantile(x, 0.5), 3);
  EXPECT_EQ(quantile(x, 1), 5);
}

TEST(Image, AffinePutsTheMiddleElementAtThePosition) {
  const double c = std::cos(0.3), s = std::sin(0.3);
  const Orientation place = {{{{c, s, 0}, {-s, c, 0}, {0, 0, 1}}}, {10, -20, 30}};
  const std::array<double, 3> voxel = {1.5, 2, 4};
  for (const std::array<index_t, 3>& n :
       {std::array<index_t, 3>{8, 6, 1}, std::array<index_t, 3>{7, 5, 3}}) {
    const AffineMatrix a = lps_affine(place, voxel, n);
    for (std::size_t row = 0; row < 3; ++row) {
      double at = a[row][3];
      for (std::size_t d = 0; d < 3; ++d) at += a[row][d] * static_cast<double>(n[d] / 2);
      EXPECT_NEAR(at, place.position_mm[row], 1e-12);
    }
    const Orientation back = orientation_of(a, n);
    for (std::size_t d = 0; d < 3; ++d) {
      EXPECT_NEAR(back.position_mm[d], place.position_mm[d], 1e-12);
      for (std::size_t row = 0; row < 3; ++row) {
        EXPECT_NEAR(back.directions[d][row], place.directions[d][row], 1e-12);
      }
    }
  }
}

TEST(Image, AColumnOfZeroGetsTheMissingDirection) {
  const AffineMatrix flat = {{{2, 0, 0, 0}, {0, 0, 0, 0}, {0, 3, 0, 0}}};
  const Orientation place = orientation_of(flat, {4, 4, 1});
  EXPECT_NEAR(place.directions[2][1], -1, 1e-12);
}

TEST(Image, RadiologicalViewsPutAnteriorAndSuperiorAtTheTop) {
  Image image;
  image.data = Tensor::arange(6, DType::float32).view({2, 3});
  image.names = Dims("Ny Nx");
  // x to the right, y to anterior, both opposite to LPS: both axes are flipped.
  image.affine_lps = AffineMatrix{{{-1, 0, 0, 0}, {0, -1, 0, 0}, {0, 0, 1, 0}}};
  EXPECT_EQ(radiological(image).data.to_vector<float>(), (std::vector<float>{5, 4, 3, 2, 1, 0}));
  // Coronal: x to the left, y to superior: rows are flipped.
  image.affine_lps = AffineMatrix{{{1, 0, 0, 0}, {0, 0, 1, 0}, {0, 1, 0, 0}}};
  EXPECT_EQ(radiological(image).data.to_vector<float>(), (std::vector<float>{3, 4, 5, 0, 1, 2}));
  // x to posterior, y to the left: the axes are transposed.
  image.affine_lps = AffineMatrix{{{0, 1, 0, 0}, {1, 0, 0, 0}, {0, 0, 1, 0}}};
  EXPECT_EQ(radiological(image).data.shape(), (Extents{3, 2}));
  EXPECT_EQ(radiological(image).data.to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  image.affine_lps.reset();
  EXPECT_EQ(radiological(image).data.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(Image, UsualNamesEndInXAndRefuseNineAxes) {
  EXPECT_EQ(usual_names(2).str(), "(Ny, Nx)");
  EXPECT_EQ(usual_names(4).str(), "(T, Nz, Ny, Nx)");
  expect_error<ShapeError>([] { usual_names(9); }, "9 axes");
}

}  // namespace
}  // namespace palimpsest
