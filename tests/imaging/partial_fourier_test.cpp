// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/partial_fourier.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "imaging/simulated.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/recon/partial_images.hpp"
#include "palimpsest/imaging/transforms.hpp"
#include "support/difference.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::difference_of_magnitudes;
using testing::expect_error;
using Sample = std::complex<float>;

// An ellipse phantom times a smooth phase.
Tensor smooth_image(index_t ny, index_t nx) {
  Tensor image = ellipse_image(modified_shepp_logan(), ny, nx).to(DType::complex64).contiguous();
  auto* v = image.mutable_data<Sample>();
  for (index_t i = 0; i < image.numel(); ++i) {
    const double y = static_cast<double>(i / nx) / static_cast<double>(ny);
    const double x = static_cast<double>(i % nx) / static_cast<double>(nx);
    v[i] *= std::polar(1.0F, static_cast<float>(0.7 + 1.5 * y - x + y * x));
  }
  return image;
}

// Without the lines that were not acquired.
Tensor cut(Tensor kspace, const PartialLines& lines) {
  kspace = kspace.contiguous().clone();
  const index_t missing = lines.extent - lines.acquired;
  kspace.narrow(lines.axis, lines.from_end ? 0 : lines.acquired, missing).fill(0);
  return kspace;
}

Tensor mask_of_lines(const Extents& shape, const PartialLines& lines) {
  Tensor mask = Tensor::full<bool>(shape, true);
  const index_t missing = lines.extent - lines.acquired;
  mask.narrow(lines.axis, lines.from_end ? 0 : lines.acquired, missing).fill(0);
  return mask;
}

TEST(PartialFourier, BothMethodsComeNearerThanZeros) {
  for (const index_t ny : {64, 63}) {
    const Tensor image = smooth_image(ny, 60);
    const Tensor full = transform(image, {0, 1});
    for (const index_t axis : {0, 1}) {
      for (const bool from_end : {false, true}) {
        const index_t n = image.shape(axis);
        const PartialLines lines{
            .axis = axis, .extent = n, .acquired = 5 * n / 8, .from_end = from_end};
        const Tensor kspace = cut(full, lines);
        const Tensor zeros = transform(kspace, {0, 1}, {.inverse = true});
        const double without = difference_of_magnitudes(zeros, image);
        const double fraction = static_cast<double>(lines.acquired) / static_cast<double>(n);
        const Tensor real = homodyne(kspace, axis, fraction, {.from_end = from_end});
        const Tensor step = homodyne(kspace, axis, fraction, {.from_end = from_end, .ramp = false});
        const Tensor projected = pocs(kspace, mask_of_lines(image.shape(), lines));
        EXPECT_LT(difference_of_magnitudes(real, image), 0.6 * without);
        EXPECT_LT(difference_of_magnitudes(step, image), 0.6 * without);
        EXPECT_LT(difference_of_magnitudes(projected, image), 0.6 * without);
        // Images, of which only one axis is transformed.
        for (const auto method : {PartialFourier::homodyne, PartialFourier::pocs}) {
          const Tensor made = with_missing_side(zeros, lines, method);
          const Tensor& expected = method == PartialFourier::pocs ? projected : real;
          EXPECT_LT(difference_of_magnitudes(made.contiguous(), expected), 1e-5);
        }
      }
    }
  }
}

TEST(PartialFourier, AllLinesOfAnImageOfOnePhaseGiveItBack) {
  Tensor image = ellipse_image(modified_shepp_logan(), 32, 32).to(DType::complex64).contiguous();
  auto* v = image.mutable_data<Sample>();
  for (index_t i = 0; i < image.numel(); ++i) v[i] *= std::polar(1.0F, 0.7F);
  const Tensor found = homodyne(transform(image, {0, 1}), 0, 1.0);
  // The phase of the middle lines equals the phase of the image, except where the image is almost
  // 0.
  EXPECT_LT(difference_of_magnitudes(found, image), 1e-3);
  for (const Sample value : found.to_vector<Sample>()) ASSERT_EQ(value.imag(), 0);
}

// Lines 0 to 6 of 8, the middle 4: w = 2.
TEST(PartialFourier, WeightsRiseTowardsTheMeasuredSide) {
  const PartialLines lines{.axis = 0, .extent = 8, .acquired = 7};
  EXPECT_EQ(lines.beyond_middle(), 2);
  const PartialLines from_end{.axis = 0, .extent = 8, .acquired = 7, .from_end = true};
  EXPECT_EQ(from_end.beyond_middle(), 3);
  EXPECT_EQ((PartialLines{.extent = 9, .acquired = 7}).beyond_middle(), 2);
  EXPECT_EQ((PartialLines{.extent = 9, .acquired = 7, .from_end = true}).beyond_middle(), 2);
  // A point at line k alone has the magnitude of its weight, reduced by the phase removal.
  const auto magnitude_of = [](index_t line) {
    Tensor kspace = Tensor::zeros({8, 1}, DType::complex64);
    kspace.set<Sample>({line, 0}, 1.0F);
    kspace.set<Sample>({4, 0}, 1e-20F);  // phase 0
    return homodyne(kspace, 0, 7.0 / 8);
  };
  // The maximum of a cosine of this amplitude; d = 3 > w, then a line that is its own mirror image.
  const auto top_of = [&](index_t line) {
    double top = 0;
    for (const Sample v : magnitude_of(line).to_vector<Sample>()) {
      top = std::max(top, double{std::abs(v)});
    }
    return top * std::sqrt(8.0);
  };
  EXPECT_NEAR(top_of(1), 2, 1e-5);
  EXPECT_NEAR(top_of(0), 1, 1e-5);
  EXPECT_NEAR(top_of(3), 1.5, 1e-5);
  const Tensor near = magnitude_of(6);
  // Line 6 (d = -2 = -w) has weight 0.
  for (const Sample v : near.to_vector<Sample>()) EXPECT_NEAR(std::abs(v), 0, 1e-6);
}

TEST(PartialFourier, TheMissingSideIsFound) {
  const auto lines_of = [](index_t n, index_t first, index_t last) {
    Tensor mask = Tensor::zeros({n, 16}, DType::bool_);
    mask.narrow(0, first, last - first).fill(1);
    return partial_lines(mask);
  };
  EXPECT_FALSE(lines_of(32, 0, 32));
  EXPECT_FALSE(lines_of(33, 0, 33));
  EXPECT_FALSE(lines_of(32, 1, 32));
  EXPECT_FALSE(lines_of(32, 4, 28));
  const auto low = lines_of(32, 0, 20);
  ASSERT_TRUE(low);
  EXPECT_EQ(low->acquired, 20);
  EXPECT_FALSE(low->from_end);
  const auto high = lines_of(33, 10, 33);
  ASSERT_TRUE(high);
  EXPECT_EQ(high->acquired, 23);
  EXPECT_TRUE(high->from_end);
  expect_error<ValueError>([&] { lines_of(32, 0, 16); }, "none beyond the middle");
}

TEST(PartialFourier, MistakesAreSaid) {
  const Tensor kspace = transform(smooth_image(16, 16), {0, 1}).contiguous();
  expect_error<ValueError>([&] { homodyne(kspace, 0, 0.5); }, "fraction");
  expect_error<ValueError>([&] { homodyne(kspace, 0, 0.51); }, "none beyond the middle");
  expect_error<ValueError>([&] { homodyne(kspace, 2, 0.7); }, "axis");
  expect_error<ValueError>([&] { homodyne(kspace, 0, 0.7, {.axes = {1}}); }, "axis");
  expect_error<DTypeError>([&] { homodyne(kspace.to(DType::complex128), 0, 0.7); }, "complex64");
  const Tensor all = Tensor::full<bool>({16, 16}, true);
  expect_error<ValueError>([&] { pocs(kspace, all); }, "one side");
  expect_error<ValueError>([&] { pocs(kspace, all, {.iterations = 0}); }, "iterations");
  expect_error<ShapeError>([&] { pocs(kspace, Tensor::full<bool>({16, 8}, true)); }, "differ");
  expect_error<ShapeError>([&] { partial_lines(kspace); }, "bool");
  Tensor corner = Tensor::zeros({16, 16}, DType::bool_);
  corner.narrow(0, 0, 11).narrow(1, 0, 11).fill(1);
  expect_error<ValueError>([&] { partial_lines(corner); }, "along both axis 0 and axis 1");
}

}  // namespace
}  // namespace palimpsest
