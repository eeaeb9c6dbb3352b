// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/pixels.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"

namespace palimpsest {
namespace {

using Sample = std::complex<float>;

TEST(Pixels, TheTransformIsThatOfKspaceFilledWithZerosOrCut) {
  for (const ImageAxis& axis : {ImageAxis{24, 24, 1}, ImageAxis{24, 40, 0.6}, ImageAxis{24, 7, 2},
                                ImageAxis{24, 30, 0.55}, ImageAxis{24, 28, 1}}) {
    const Tensor of_k = pixels_of_kspace(axis), of_image = pixels_of_image(axis);
    // From k-space to points, then to pixels, is from k-space to pixels.
    const Tensor points = pixels_of_kspace({24, 24, 1});
    for (index_t i = 0; i < axis.pixels; ++i) {
      for (index_t k = 0; k < 24; ++k) {
        std::complex<double> sum = 0;
        for (index_t j = 0; j < 24; ++j) {
          sum += std::complex<double>(of_image.data<Sample>()[i * 24 + j]) *
                 std::complex<double>(points.data<Sample>()[j * 24 + k]);
        }
        const std::complex<double> known(of_k.data<Sample>()[i * 24 + k]);
        EXPECT_LT(std::abs(sum - known), 1e-6) << axis.pixels << " " << i << " " << k;
      }
    }
  }
  // Pixels that are points are these.
  const Tensor same = pixels_of_image({24, 24, 1});
  for (index_t i = 0; i < 24 * 24; ++i) {
    EXPECT_NEAR(std::abs(same.data<Sample>()[i]), i % 25 == 0 ? 1 : 0, 1e-6);
  }
}

TEST(Pixels, AFieldThatIsLargerThanTheMeasuredOneEndsInZeros) {
  const Tensor matrix = pixels_of_image({8, 12, 1});
  for (index_t i = 0; i < 12; ++i) {
    double sum = 0;
    for (index_t j = 0; j < 8; ++j) sum += std::abs(matrix.data<Sample>()[i * 8 + j]);
    EXPECT_NEAR(sum, i < 2 || i > 10 ? 0 : 1, 1e-6) << i;
  }
}

TEST(Pixels, AreTakenAlongSeveralAxesAtOnceWithThePlannedBytes) {
  const ImageAxis axes[] = {{6, 4, 1}, {10, 15, 0.5}, {8, 6, 1.25}};
  const PixelTaker taker({3, 6, 10, 8}, axes);
  EXPECT_EQ(taker.shape(), (Extents{3, 4, 15, 6}));
  const Tensor given = Tensor::random_normal({3, 6, 10, 8}, DType::complex64, {2, 1});
  const MemoryScope scope;
  const Tensor taken = taker.take(given.clone());
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), taker.peak_bytes());
  ASSERT_EQ(taken.shape(), taker.shape());
  // An element by the definition.
  const Tensor y = pixels_of_image(axes[1]), x = pixels_of_image(axes[2]);
  std::complex<double> sum = 0;
  for (index_t j = 0; j < 10; ++j) {
    for (index_t i = 0; i < 8; ++i) {
      sum += std::complex<double>(given.at<Sample>({2, 3, j, i})) *
             std::complex<double>(y.at<Sample>({7, j})) *
             std::complex<double>(x.at<Sample>({1, i}));
    }
  }
  EXPECT_LT(std::abs(sum - std::complex<double>(taken.at<Sample>({2, 2, 7, 1}))), 1e-5);
  EXPECT_EQ(PixelTaker({6, 10}, std::span(axes, 1)).peak_bytes(), 0);
}

TEST(Pixels, OfAHeader) {
  RawScanHeader header;
  header.encoded.field_of_view_mm = {400, 300, 5};
  header.recon.field_of_view_mm = {200, 200, 5};
  header.recon.matrix = {64, 64, 1};
  const ImageAxis x = image_axis(header, {}, 0, 128), y = image_axis(header, {}, 1, 72);
  EXPECT_EQ(x.pixels, 64);
  EXPECT_FALSE(x.is_resampled());
  EXPECT_EQ(y.pixels, 64);
  EXPECT_NEAR(y.spacing, 0.75, 1e-12);
  EXPECT_EQ(image_axis(header, {.encoded_pixels = true}, 1, 72).pixels, 48);
  EXPECT_EQ(image_axis(header, {}, 2, 1).pixels, 1);
  // Fields of view that are not known: the number of pixels is cut.
  header.recon.field_of_view_mm = header.encoded.field_of_view_mm = {0, 0, 0};
  EXPECT_EQ(image_axis(header, {}, 1, 72).pixels, 64);
  EXPECT_FALSE(image_axis(header, {}, 1, 72).is_resampled());
  header.recon.matrix = {60000, 64, 1};
  header.recon.field_of_view_mm = header.encoded.field_of_view_mm = {200, 200, 5};
  EXPECT_THROW(image_axis(header, {}, 0, 128), FormatError);
  EXPECT_THROW(check_pixels({.matrix = {64}}), ValueError);
  EXPECT_THROW(check_pixels({.field_of_view_mm = {200, -1}}), ValueError);
}

}  // namespace
}  // namespace palimpsest
