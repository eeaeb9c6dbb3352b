// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/text.hpp"

namespace palimpsest::cli {
namespace {

using Sample = std::complex<float>;

TEST(Image, MagnitudeOfComplexAndReal) {
  EXPECT_EQ(magnitude(Tensor::from<Sample>({{3, 4}, {0, -2}})).to_vector<float>(),
            (std::vector<float>{5, 2}));
  EXPECT_EQ(magnitude(Tensor::from<double>({-1.5, 2})).to_vector<float>(),
            (std::vector<float>{1.5F, 2}));
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

TEST(Image, ComparisonFitsTheScale) {
  const Tensor reference = Tensor::from<float>({1, 2, 3, 4}, Extents{2, 2});
  const Tensor twice = Tensor::from<Sample>({{0, 2}, {4, 0}, {-6, 0}, {8, 0}}, Extents{2, 2});
  const Comparison same = compare_magnitudes(reference, twice);
  EXPECT_NEAR(same.scale, 0.5, 1e-7);
  EXPECT_NEAR(same.nrmse, 0, 1e-7);
  const Tensor wrong = Tensor::from<float>({1, 0, 0, 0}, Extents{2, 2});
  EXPECT_NEAR(compare_magnitudes(reference, wrong).nrmse, std::sqrt(29.0 / 30), 1e-7);
  EXPECT_EQ(compare_magnitudes(reference, Tensor::zeros({2, 2})).nrmse, 1);
}

TEST(Image, ComparisonRejectsWhatCannotBeCompared) {
  EXPECT_THAT(
      [] {
        compare_magnitudes(Tensor::ones({2, 2}), Tensor::ones({2, 3}));
      },
      testing::ThrowsMessage<UsageError>(testing::HasSubstr("differ in shape")));
  EXPECT_THAT(
      [] {
        compare_magnitudes(Tensor::zeros({2, 2}), Tensor::ones({2, 2}));
      },
      testing::ThrowsMessage<UsageError>(testing::HasSubstr("0 everywhere")));
}

TEST(Image, PanelsStandInARowWithGaps) {
  const Tensor black = Tensor::zeros({2, 3}, DType::float32);
  const Tensor white = Tensor::full<float>({2, 3}, 1.5F);
  const Tensor row = panels_in_a_row({black, white}, 1);
  ASSERT_EQ(row.shape(), (Extents{4, 9}));
  EXPECT_EQ(row.at<std::uint8_t>({1, 1}), 0);
  EXPECT_EQ(row.at<std::uint8_t>({2, 7}), 255);
  for (const index_t x : {0, 4, 8}) {
    EXPECT_NEAR(row.at<std::uint8_t>({2, x}), 89, 1);
  }
}

TEST(Text, NumbersAndTables) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(counted(1, "coil"), "1 coil");
  EXPECT_EQ(counted(0, "coil"), "0 coils");
  EXPECT_EQ(counted(1024, "iteration"), "1,024 iterations");
  EXPECT_EQ(aligned_table({{"", "n"}, {"a", "10"}}), "    n\na  10\n");
}

}  // namespace
}  // namespace palimpsest::cli
