// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/montage.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

constexpr int kBackground = 51, kInk = 235;

int count_of(const Tensor& picture, int gray) {
  int n = 0;
  for (const auto v : picture.to_vector<std::uint8_t>()) n += v == gray ? 1 : 0;
  return n;
}

TEST(Montage, PanelsStandInARowWithGaps) {
  const Tensor black = Tensor::zeros({2, 3}, DType::float32);
  const Tensor white = Tensor::full<float>({2, 3}, 1.5F);
  const Tensor row = montage({{black, ""}, {white, ""}}, {.gap = 1, .high = 1.0});
  ASSERT_EQ(row.shape(), (Extents{4, 9}));
  EXPECT_EQ(row.at<std::uint8_t>({1, 1}), 0);
  EXPECT_EQ(row.at<std::uint8_t>({2, 7}), 255);
  for (const index_t x : {0, 4, 8}) EXPECT_EQ(row.at<std::uint8_t>({2, x}), kBackground);
}

TEST(Montage, HasOneWindowForAll) {
  const Tensor one = Tensor::full<float>({2, 2}, 1.0F), four = Tensor::full<float>({2, 2}, 4.0F);
  const Tensor both = montage({{one, ""}, {four, ""}}, {.gap = 0});
  EXPECT_EQ(both.at<std::uint8_t>({0, 0}), 64);
  EXPECT_EQ(both.at<std::uint8_t>({0, 2}), 255);
  Tensor bad = one.clone();
  bad.set<float>({0, 0}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(montage({{bad, ""}}, {.gap = 0, .high = 1.0}).at<std::uint8_t>({0, 0}), 0);
}

TEST(Montage, WritesLabelsAboveAndNotesBelow) {
  const Tensor image = Tensor::zeros({40, 60}, DType::float32);
  const Tensor plain = montage({{image, ""}});
  const Tensor labelled = montage({{image, "adjoint"}});
  const Tensor both = montage({{image, "adjoint", "NRMSE 0.13"}});
  EXPECT_EQ(plain.shape(), (Extents{56, 76}));
  EXPECT_EQ(labelled.shape(), (Extents{68, 76}));
  EXPECT_EQ(both.shape(), (Extents{80, 76}));
  EXPECT_EQ(count_of(plain, kInk), 0);
  // The same letters in another order have the same number of points.
  EXPECT_EQ(count_of(labelled, kInk), count_of(montage({{image, "tniojda"}}), kInk));
  EXPECT_GT(count_of(labelled, kInk), 60);
  EXPECT_GT(count_of(both, kInk), count_of(labelled, kInk) + 60);
  // Labels do not cover the image.
  EXPECT_EQ(count_of(labelled, 0), 40 * 60);
}

TEST(Montage, CellsAreAsWideAsTheLongestText) {
  const Tensor image = Tensor::zeros({8, 8}, DType::float32);
  const Tensor picture = montage({{image, "zero-filled"}, {image, "x"}}, {.gap = 2});
  EXPECT_EQ(picture.shape(1), 2 * (11 * 6 - 1 + 2) + 2);
  const Tensor letters = montage({{image, "\xe4\x01"}}, {.gap = 2});
  EXPECT_EQ(count_of(letters, kInk), count_of(montage({{image, "??"}}, {.gap = 2}), kInk));
}

TEST(Montage, BreaksRows) {
  const Tensor image = Tensor::ones({2, 2}, DType::float32);
  const std::vector<Panel> seven(7, Panel{image, ""});
  EXPECT_EQ(montage(seven, {.gap = 0}).shape(), (Extents{6, 6}));
  EXPECT_EQ(montage(seven, {.columns = 7, .gap = 0}).shape(), (Extents{2, 14}));
  EXPECT_EQ(montage({seven.begin(), seven.begin() + 4}, {.gap = 0}).shape(), (Extents{2, 8}));
}

TEST(Montage, RefusesWhatItCannotShow) {
  const Tensor image = Tensor::ones({2, 2}, DType::float32);
  expect_error<ValueError>([] { montage({}); }, "no panels");
  expect_error<ShapeError>(
      [&] {
        montage({{image, ""}, {Tensor::ones({2, 3}), ""}});
      },
      "of one size");
  expect_error<DTypeError>(
      [&] {
        montage({{Tensor::ones({2, 2}, DType::complex64), ""}});
      },
      "magnitude()");
  expect_error<ValueError>([&] { montage({{image, ""}}, {.low = 1, .high = 1.0}); }, "window");
}

TEST(Montage, PlanesOfAVolumeAreNumbered) {
  const std::vector<Panel> planes = planes_of(Tensor::ones({2, 3, 4, 5}, DType::complex64));
  ASSERT_EQ(planes.size(), 6U);
  EXPECT_EQ(planes[4].label, "1,1");
  EXPECT_EQ(planes[4].image.shape(), (Extents{4, 5}));
  EXPECT_EQ(planes_of(Tensor::ones({4, 5})).front().label, "");
  EXPECT_EQ(planes_of(Tensor::full<float>({1, 1}, -2.0F), true).front().image.item<float>(), -2);
  expect_error<ShapeError>([] { planes_of(Tensor::ones({4})); }, "(.., y, x)");
}

TEST(Montage, WhiteIsNeverBelowAPartOfTheLargest) {
  Tensor x = Tensor::zeros({20, 20}, DType::float32);
  EXPECT_EQ(white_level(x), 1);
  x.set<float>({3, 3}, 10);
  EXPECT_EQ(white_level(x), 4);
}

TEST(TextPreview, ShowsBrightAsDense) {
  Tensor x = Tensor::zeros({8, 8}, DType::float32);
  Tensor right = x.narrow(1, 4, 4);
  right.fill<float>(1);
  EXPECT_EQ(text_preview(x, 8), "    @@@@\n    @@@@\n    @@@@\n    @@@@\n");
  EXPECT_EQ(text_preview(x, 4), "  @@\n  @@\n");
  EXPECT_EQ(text_preview(Tensor::zeros({4, 2}), 2), "\n\n");
  expect_error<ValueError>([&] { text_preview(x, 0); }, "columns");
  expect_error<ShapeError>([] { text_preview(Tensor::ones({2})); }, "(y, x)");
}

}  // namespace
}  // namespace palimpsest
