// SPDX-License-Identifier: Apache-2.0
// Transforms, weights of the spectrum, and transforms back in one.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "kernels/fft_reference.hpp"
#include "kernels/targets.hpp"

namespace palimpsest::testing {
namespace {

// Weights of a spectrum with the axes of x: row-major ones of its extents, which are transposed in
// registers, or of any layout and maybe of one element along axes.
Array weights_for(Random& random, const Array& x, bool is_complex, bool is_dense) {
  Extents extents = x.extents();
  for (index_t& n : extents) n = !is_dense && uniform(random, 0, 2) == 0 ? 1 : n;
  const DType dtype = is_complex ? x.dtype() : real_of(x.dtype());
  Array weights(dtype, extents,
                is_dense ? contiguous_strides(extents) : random_strides(random, extents, false),
                uniform(random, 0, 1));
  weights.fill_normal(random);
  return weights;
}

FftWeights described(const Array& weights) {
  FftWeights result{is_complex(weights.dtype()), weights.strides()};
  for (std::size_t i = 0; i < weights.extents().size(); ++i) {
    if (weights.extents()[i] == 1) result.strides[i] = 0;
  }
  return result;
}

// Multiplies x by weights, which may repeat along axes.
void multiply(Array& x, const Array& weights) {
  for (index_t i = 0; i < x.count(); ++i) {
    index_t at = 0, rest = i, step = 1;
    for (std::size_t k = x.extents().size(); k-- > 0;) {
      const index_t n = weights.extents()[k];
      at += (n == 1 ? 0 : rest % n) * step;
      rest /= x.extents()[k];
      step *= n;
    }
    x.set_value(i, x.value(i) * weights.value(at));
  }
}

std::vector<Wide> values_of(const Array& x) {
  std::vector<Wide> values;
  for (index_t i = 0; i < x.count(); ++i) values.push_back(x.value(i));
  return values;
}

// The transform, the product and the transform back, one after the other.
std::vector<Wide> weighed_apart(FftSpec spec, const Array& x, const Array& weights) {
  Array values(DType::complex128, x.extents());
  spec.weights.reset();
  const double scale = std::exchange(spec.scale, 1);
  const auto spectrum = naive(spec, x);
  for (index_t i = 0; i < x.count(); ++i) {
    values.set_value(i, spectrum[static_cast<std::size_t>(i)]);
  }
  multiply(values, weights);
  spec.forward = !spec.forward;
  spec.scale = scale;
  return naive(spec, values);
}

void expect_weighed(Random& random, const Extents& extents, DType dtype, Axes axes, int trial) {
  Array x(dtype, extents, random_strides(random, extents, false), uniform(random, 0, 1));
  Array y(dtype, extents, random_strides(random, extents, false), uniform(random, 0, 1));
  x.fill_normal(random);
  const Array weights = weights_for(random, x, trial % 7 < 3, trial / 2 % 2 == 0);
  FftSpec spec = spec_for(x, y, std::move(axes));
  spec.forward = trial % 3 != 0;
  spec.centered = trial % 4 < 2;
  double points = 1;
  for (const index_t axis : spec.axes) {
    points *= static_cast<double>(extents[static_cast<std::size_t>(axis)]);
  }
  spec.scale = 0.5 / points;
  spec.weights = described(weights);
  const auto expected = weighed_apart(spec, x, weights);
  const auto before = elements(x), weights_before = elements(weights);
  const std::string what = describe(spec) + " weights " + to_string(weights.extents());
  expect_same_on_threads([&] {
    execute(fft_plan(spec), x.address(0), y.address(0), weights.address(0));
    return elements(y);
  });
  expect_close(y, expected, what);
  EXPECT_EQ(elements(x), before) << "the input was written: " << what;
  EXPECT_TRUE(y.gaps_are_intact()) << what;
  spec.out_strides = spec.in_strides;
  spec.in_place = true;
  execute(fft_plan(spec), x.address(0), x.address(0), weights.address(0));
  expect_close(x, expected, what);
  EXPECT_EQ(elements(weights), weights_before) << "the weights were written: " << what;
}

TEST(WeightedFft, AnySizesAxesLayoutsAgreeWithTwoTransforms) {
  Random random(91);
  for (int trial = 0; trial < 600; ++trial) {
    const DType dtype = trial % 2 == 0 ? DType::complex64 : DType::complex128;
    const Extents extents = random_extents(random, 4, trial % 5 == 0 ? 40 : 9, 1000);
    const Axes axes = random_axes(random, extents);
    expect_weighed(random, extents, dtype, axes, trial);
  }
}

// Lines that are transformed one by one, by sums of products and as convolutions, alone, side by
// side, and shifted by an even and an odd number.
TEST(WeightedFft, LongerLinesAgreeWithTwoTransforms) {
  Random random(92);
  int trial = 0;
  for (const index_t n : {64, 90, 115, 127, 182, 230, 251}) {
    for (const Extents& extents : {Extents{n}, {2, n}, {n, 3}, {n, 37}, {2, n, 5}}) {
      for (const DType dtype : {DType::complex64, DType::complex128}) {
        const auto longest = std::max_element(extents.begin(), extents.end()) - extents.begin();
        for (int variant = 0; variant < 3; ++variant) {
          expect_weighed(random, extents, dtype, {static_cast<index_t>(longest)}, ++trial);
        }
      }
    }
  }
}

// Large arrays: two transforms of the same library are the reference.
void expect_like_two_transforms(Random& random, const Extents& extents, Axes axes, bool centered) {
  Array x(DType::complex64, extents), y(DType::complex64, extents);
  x.fill_normal(random);
  const Array weights = weights_for(random, x, centered, centered);
  FftSpec spec = spec_for(x, y, std::move(axes));
  spec.centered = centered;
  execute(fft_plan(spec), x.address(0), y.address(0));
  multiply(y, weights);
  FftSpec back = spec;
  back.forward = false;
  back.in_place = true;
  for (const index_t axis : spec.axes) {
    back.scale /= static_cast<double>(extents[static_cast<std::size_t>(axis)]);
  }
  execute(fft_plan(back), y.address(0), y.address(0));
  const auto expected = values_of(y);
  spec.scale = back.scale;
  spec.weights = described(weights);
  expect_same_on_threads([&] {
    execute(fft_plan(spec), x.address(0), y.address(0), weights.address(0));
    return elements(y);
  });
  expect_close(y, expected, describe(spec));
}

TEST(WeightedFft, LargeArraysAgreeWithTwoTransforms) {
  Random random(93);
  for (const auto& [extents, axes] : {std::pair<Extents, Axes>{{131072, 2}, {0}},  // a long line
                                      {{3, 160, 130}, {1, 2}},                     // blocks
                                      {{2, 36, 64, 128}, {1, 2, 3}},               // slices
                                      {{70, 5, 128}, {0, 2}},
                                      {{128, 128, 6}, {0, 1}}}) {
    for (const bool centered : {false, true}) {
      expect_like_two_transforms(random, extents, axes, centered);
    }
  }
}

// FFTW and chirps are the same on all instruction sets of a test; products with weights must be.
TEST(WeightedFft, BitsAreTheSameOnEveryInstructionSet) {
  Random random(95);
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    for (const bool is_complex : {false, true}) {
      for (const Extents& extents : {Extents{70, 37}, {115, 34}, {3, 67}}) {
        Array x(dtype, extents), y(dtype, extents);
        x.fill_normal(random);
        const Array weights = weights_for(random, x, is_complex, true);
        FftSpec spec = spec_for(x, y, {extents[0] == 3 ? 1 : 0});
        spec.centered = true;
        spec.weights = described(weights);
        const auto on = [&](std::int64_t target) {
          const TargetScope scope(target);
          execute(fft_plan(spec), x.address(0), y.address(0), weights.address(0));
          return elements(y);
        };
        const auto plain = on(0);
        for (const std::int64_t target : vector_targets()) {
          EXPECT_EQ(on(target), plain) << describe(spec) << " target " << target;
        }
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
