// SPDX-License-Identifier: Apache-2.0
// Transforms, weights of the spectrum, and transforms back in one.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "kernels/fft_reference.hpp"
#include "kernels/targets.hpp"
#include "palimpsest/kernels/fft/panel_weights.hpp"

namespace palimpsest::testing {
namespace {

// Weights of a spectrum of these extents: row-major ones, which are transposed in registers, or of
// any layout and maybe of one element along axes.
Array weights_for(Random& random, Extents extents, DType dtype, bool is_complex, bool is_dense) {
  for (index_t& n : extents) n = !is_dense && uniform(random, 0, 2) == 0 ? 1 : n;
  if (!is_complex) dtype = real_of(dtype);
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

// The first elements along each axis, among zeros if `extents` are larger.
Array resized(const Array& x, const Extents& extents) {
  Array result(DType::complex128, extents);
  for (index_t i = 0; i < result.count(); ++i) {
    index_t at = 0, rest = i, step = 1;
    bool is_inside = true;
    for (std::size_t k = extents.size(); k-- > 0;) {
      const index_t position = rest % extents[k];
      is_inside = is_inside && position < x.extents()[k];
      at += position * step;
      rest /= extents[k];
      step *= x.extents()[k];
    }
    result.set_value(i, is_inside ? x.value(at) : Wide(0));
  }
  return result;
}

std::vector<Wide> values_of(const Array& x) {
  std::vector<Wide> values;
  for (index_t i = 0; i < x.count(); ++i) values.push_back(x.value(i));
  return values;
}

// The transform, the product and the transform back, one after the other.
std::vector<Wide> weighed_apart(FftSpec spec, const Array& x, const Array& weights) {
  if (!spec.weights->extents.empty()) spec.extents = spec.weights->extents;
  Array values = resized(x, spec.extents);
  spec.weights.reset();
  spec.in_strides = spec.out_strides = values.strides();
  const auto transform = [&](double scale) {
    spec.scale = scale;
    const auto result = naive(spec, values);
    for (index_t i = 0; i < values.count(); ++i) {
      values.set_value(i, result[static_cast<std::size_t>(i)]);
    }
  };
  const double scale = spec.scale;
  transform(1);
  multiply(values, weights);
  spec.forward = !spec.forward;
  transform(scale);
  return values_of(resized(values, x.extents()));
}

// Executes with memory besides, whose end is checked.
void execute_weighed(const FftSpec& spec, const Array& x, Array& y, const Array& weights,
                     const Array* factors = nullptr, int threads = 1) {
  const std::size_t bytes = fft_workspace_bytes(spec, threads);
  std::vector<std::byte> workspace(bytes + 64, std::byte{0x5a});
  FftOperands operands{.weights = weights.address(0),
                       .workspace = std::span(workspace).first(bytes)};
  if (factors != nullptr) operands.factors = factors->address(0);
  execute(fft_plan(spec), x.address(0), y.address(0), operands);
  const auto is_intact = [](std::byte b) { return b == std::byte{0x5a}; };
  EXPECT_TRUE(std::all_of(workspace.end() - 64, workspace.end(), is_intact)) << describe(spec);
}

// `zeros` lie behind the array along each axis; empty: none.
void expect_weighed(Random& random, const Extents& extents, DType dtype, Axes axes, int trial,
                    const Extents& zeros = {}) {
  Array x(dtype, extents, random_strides(random, extents, false), uniform(random, 0, 1));
  Array y(dtype, extents, random_strides(random, extents, false), uniform(random, 0, 1));
  x.fill_normal(random);
  Extents spectrum = extents;
  for (std::size_t k = 0; k < zeros.size(); ++k) spectrum[k] += zeros[k];
  const Array weights = weights_for(random, spectrum, dtype, trial % 7 < 3, trial / 2 % 2 == 0);
  FftSpec spec = spec_for(x, y, std::move(axes));
  spec.forward = trial % 3 != 0;
  spec.centered = trial % 4 < 2;
  double points = 1;
  for (const index_t axis : spec.axes) {
    points *= static_cast<double>(spectrum[static_cast<std::size_t>(axis)]);
  }
  spec.scale = 0.5 / points;
  spec.weights = described(weights);
  if (!zeros.empty()) spec.weights->extents = spectrum;
  const auto expected = weighed_apart(spec, x, weights);
  const auto before = elements(x), weights_before = elements(weights);
  const std::string what = describe(spec) + " weights " + to_string(weights.extents());
  expect_same_on_threads([&] {
    execute_weighed(spec, x, y, weights);
    return elements(y);
  });
  expect_close(y, expected, what);
  EXPECT_EQ(elements(x), before) << "the input was written: " << what;
  EXPECT_TRUE(y.gaps_are_intact()) << what;
  spec.out_strides = spec.in_strides;
  spec.in_place = true;
  execute_weighed(spec, x, x, weights);
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
    for (const Extents& extents : {Extents{n}, {2, n}, {n, 3}, {n, 37}, {n, 40}, {2, n, 5}}) {
      for (const DType dtype : {DType::complex64, DType::complex128}) {
        const auto longest = std::max_element(extents.begin(), extents.end()) - extents.begin();
        for (int variant = 0; variant < 3; ++variant) {
          expect_weighed(random, extents, dtype, {static_cast<index_t>(longest)}, ++trial);
        }
      }
    }
  }
}

TEST(WeightedFft, ZerosBehindTheArrayAreNeitherStoredNorTransformed) {
  Random random(96);
  for (int trial = 0; trial < 600; ++trial) {
    const DType dtype = trial % 2 == 0 ? DType::complex64 : DType::complex128;
    const Extents extents = random_extents(random, 4, trial % 5 == 0 ? 30 : 7, 500);
    const Axes axes = random_axes(random, extents);
    Extents zeros(extents.size(), 0);
    for (const index_t axis : axes) {
      const index_t n = extents[static_cast<std::size_t>(axis)];
      zeros[static_cast<std::size_t>(axis)] =
          uniform(random, 0, 3) == 0 ? 0 : uniform(random, 0, n);
    }
    expect_weighed(random, extents, dtype, axes, trial, zeros);
  }
}

// Lines of all kinds, and a workspace in which blocks take turns.
TEST(WeightedFft, ZerosBehindLongerLines) {
  Random random(97);
  int trial = 0;
  for (const index_t n : {64, 115, 127, 200}) {
    for (const Extents& extents : {Extents{n / 2}, {2, n / 2}, {n / 2, 37}, {3, n / 2, 5}}) {
      const auto longest = std::max_element(extents.begin(), extents.end()) - extents.begin();
      Extents zeros(extents.size(), 0);
      zeros[static_cast<std::size_t>(longest)] = n - n / 2;
      for (const DType dtype : {DType::complex64, DType::complex128}) {
        expect_weighed(random, extents, dtype, {static_cast<index_t>(longest)}, ++trial, zeros);
      }
    }
  }
}

// sum_c conj(m_c) F'(w_c F(m_c x)), for m of these extents.
void expect_summed(Random& random, const Extents& extents, const Extents& zeros, DType dtype,
                   Axes axes, int trial) {
  const Extents image(extents.begin() + 1, extents.end());
  const auto layout = [&](const Extents& e) {
    return trial % 3 == 0 ? contiguous_strides(e) : random_strides(random, e, false);
  };
  Array x(dtype, image, layout(image), uniform(random, 0, 1));
  Array y(dtype, image, layout(image), uniform(random, 0, 1));
  Array factors(dtype, extents, layout(extents), uniform(random, 0, 1));
  x.fill_normal(random);
  factors.fill_normal(random);
  Extents spectrum = extents;
  for (std::size_t k = 0; k < zeros.size(); ++k) spectrum[k] += zeros[k];
  const Array weights = weights_for(random, spectrum, dtype, trial % 5 < 2, trial % 4 < 2);
  FftSpec spec = spec_for(factors, factors, axes);
  spec.in_strides = spec.out_strides = {0};
  for (const index_t stride : x.strides()) spec.in_strides.push_back(stride);
  for (const index_t stride : y.strides()) spec.out_strides.push_back(stride);
  spec.centered = trial % 2 == 0;
  spec.forward = trial % 3 != 1;
  spec.in_place = false;
  spec.scale = 0.5;
  for (const index_t axis : axes) {
    spec.scale /= static_cast<double>(spectrum[static_cast<std::size_t>(axis)]);
  }
  spec.weights = described(weights);
  if (!zeros.empty()) spec.weights->extents = spectrum;
  spec.factors = FftFactors{factors.strides()};

  Array products(DType::complex128, extents);
  for (index_t i = 0; i < products.count(); ++i) {
    products.set_value(i, factors.value(i) * x.value(i % x.count()));
  }
  FftSpec apart = spec;
  apart.factors.reset();
  apart.dtype = DType::complex128;
  apart.in_strides = apart.out_strides = products.strides();
  const std::vector<Wide> weighed = weighed_apart(apart, products, weights);
  std::vector<Wide> expected(static_cast<std::size_t>(x.count()));
  for (index_t i = 0; i < products.count(); ++i) {
    expected[static_cast<std::size_t>(i % x.count())] +=
        std::conj(factors.value(i)) * weighed[static_cast<std::size_t>(i)];
  }
  const auto before = elements(x), factors_before = elements(factors);
  const std::string what = describe(spec) + " factors, zeros " + to_string(zeros);
  expect_same_on_threads([&] {
    execute_weighed(spec, x, y, weights, &factors);
    return elements(y);
  });
  expect_close(y, expected, what);
  EXPECT_EQ(elements(x), before) << "the input was written: " << what;
  EXPECT_EQ(elements(factors), factors_before) << "the factors were written: " << what;
  EXPECT_TRUE(y.gaps_are_intact()) << what;
}

TEST(WeightedFft, FactorsAreMultipliedAndSummedAlongTheFirstAxis) {
  Random random(100);
  for (int trial = 0; trial < 600; ++trial) {
    Extents extents = random_extents(random, 4, trial % 5 == 0 ? 20 : 6, 400);
    while (extents.size() < 3) extents.push_back(uniform(random, 1, 6));
    Axes axes;
    for (std::size_t k = 1; k < extents.size(); ++k) {
      const bool is_needed = extents.size() - k + axes.size() <= 2;
      if (is_needed || uniform(random, 0, 2) > 0) axes.push_back(static_cast<index_t>(k));
    }
    Extents zeros;
    if (trial % 2 == 0) {
      zeros = Extents(extents.size(), 0);
      for (const index_t axis : axes) {
        zeros[static_cast<std::size_t>(axis)] =
            uniform(random, 0, extents[static_cast<std::size_t>(axis)]);
      }
    }
    expect_summed(random, extents, zeros, trial % 4 < 2 ? DType::complex64 : DType::complex128,
                  axes, trial);
  }
}

// Lines of all kinds, transformed one by one, side by side, and as rows; slices of large arrays;
// rows half a page apart.
TEST(WeightedFft, FactorsOfLongerLines) {
  Random random(101);
  int trial = 0;
  for (const index_t n : {64, 115, 127, 256}) {
    for (const Extents& extents :
         {Extents{2, 3, n}, {3, n, 5}, {2, 4, 3, n}, {1, n, 2}, {2, n, 8}}) {
      for (const DType dtype : {DType::complex64, DType::complex128}) {
        Axes axes;
        for (std::size_t k = extents.size() - 2; k < extents.size(); ++k) {
          axes.push_back(static_cast<index_t>(k));
        }
        for (int variant = 0; variant < 4; ++variant) {
          Extents zeros;
          if (variant == 3) {
            zeros = Extents(extents.size(), 0);
            zeros.back() = 2;
          }
          expect_summed(random, extents, zeros, dtype, axes, ++trial);
        }
      }
    }
  }
}

struct LargeCase {
  Extents extents, spectrum;
  Axes axes;
};

// Two transforms of the same library, of the array among zeros, are the reference.
FftSpec expect_like_two_transforms(Random& random, const LargeCase& c, bool centered) {
  Array x(DType::complex64, c.extents), y(DType::complex64, c.extents);
  Array padded(DType::complex64, c.spectrum);
  x.fill_normal(random);
  const Array weights = weights_for(random, c.spectrum, x.dtype(), centered, centered);
  const Array wide = resized(x, c.spectrum);
  for (index_t i = 0; i < wide.count(); ++i) padded.set_value(i, wide.value(i));
  FftSpec there = spec_for(padded, padded, c.axes);
  there.centered = centered;
  there.in_place = true;
  execute(fft_plan(there), padded.address(0), padded.address(0));
  multiply(padded, weights);
  FftSpec back = there;
  back.forward = false;
  for (const index_t axis : c.axes) {
    back.scale /= static_cast<double>(c.spectrum[static_cast<std::size_t>(axis)]);
  }
  execute(fft_plan(back), padded.address(0), padded.address(0));
  FftSpec spec = spec_for(x, y, c.axes);
  spec.centered = centered;
  spec.scale = back.scale;
  spec.weights = described(weights);
  if (c.extents != c.spectrum) spec.weights->extents = c.spectrum;
  expect_same_on_threads([&] {
    execute_weighed(spec, x, y, weights);
    return elements(y);
  });
  expect_close(y, values_of(resized(padded, c.extents)), describe(spec));
  return spec;
}

TEST(WeightedFft, LargeArraysAgreeWithTwoTransforms) {
  Random random(93);
  for (const auto& [extents, axes] : {std::pair<Extents, Axes>{{131072, 2}, {0}},  // a long line
                                      {{3, 160, 130}, {1, 2}},                     // blocks
                                      {{2, 36, 64, 128}, {1, 2, 3}},               // slices
                                      {{70, 5, 128}, {0, 2}},
                                      {{128, 128, 6}, {0, 1}}}) {
    for (const bool centered : {false, true}) {
      expect_like_two_transforms(random, {extents, extents, axes}, centered);
    }
  }
}

TEST(WeightedFft, ZerosBehindLargeArrays) {
  Random random(98);
  const auto workspace = [&](const LargeCase& c) {
    std::size_t bytes = 0;
    for (const bool centered : {false, true}) {
      bytes = fft_workspace_bytes(expect_like_two_transforms(random, c, centered));
    }
    return bytes;
  };
  EXPECT_EQ(workspace({{3, 100, 80}, {3, 200, 160}, {1, 2}}), 3 * 100 * 160 * 8u)
      << "blocks side by side, with a room each";
  EXPECT_EQ(workspace({{2, 40, 48, 32}, {2, 80, 96, 64}, {1, 2, 3}}),
            (80 * (48 * 32 + 8) + 5 * 48 * 64) * 8u)
      << "blocks that take turns, in slices along the first axis, a line of cache apart";
  EXPECT_EQ(workspace({{12, 20, 24, 16}, {24, 40, 48, 32}, {0, 1, 2, 3}}),
            (24 * (20 * 24 * 16 + 8) + 40 * 24 * 16 + 2 * 24 * 32) * 8u)
      << "slices of slices";
  EXPECT_EQ(workspace({{2, 60, 48, 32}, {2, 90, 50, 32}, {1, 2, 3}}), 60 * 50 * 32 * 8u)
      << "slices would be larger";
  EXPECT_EQ(workspace({{2, 60, 48, 32}, {2, 61, 50, 32}, {1, 2, 3}}), 61 * (48 * 32 + 8) * 8u)
      << "slices whose lines need no room";
  EXPECT_EQ(workspace({{100000}, {200000}, {0}}), 0u) << "lines alone need none";
  EXPECT_EQ(workspace({{300, 3, 150}, {320, 3, 300}, {0, 2}}), 300 * 3 * 300 * 8u);
}

TEST(WeightedFft, FactorsOfLargeArraysGiveTheBitsOfSingleSteps) {
  Random random(102);
  for (const auto& [extents, spectrum, axes] :
       {LargeCase{{5, 280, 290}, {5, 280, 290}, {1, 2}},
        LargeCase{{2, 24, 20, 32}, {2, 48, 40, 64}, {1, 2, 3}},
        LargeCase{{2, 29, 100, 120}, {2, 29, 100, 120}, {2, 3}},  // slices, ten at a time
        LargeCase{{2, 40, 36, 130}, {2, 40, 36, 130}, {1, 2}}}) {
    Array x(DType::complex64, Extents(extents.begin() + 1, extents.end()));
    Array y(x.dtype(), x.extents()), factors(x.dtype(), extents), products(x.dtype(), extents);
    x.fill_normal(random);
    factors.fill_normal(random);
    const Array weights = weights_for(random, spectrum, x.dtype(), false, true);
    FftSpec spec = spec_for(products, products, axes);
    spec.centered = true;
    spec.in_place = true;
    spec.weights = described(weights);
    spec.weights->extents = spectrum;
    spec.scale = 1 / static_cast<double>(weights.count());
    const index_t n = x.count();
    const auto at = [](const Array& a, index_t i) {
      return *static_cast<const std::complex<float>*>(static_cast<const void*>(a.address(i)));
    };
    for (index_t i = 0; i < products.count(); ++i) {
      const auto m = at(factors, i), z = at(x, i % n);
      products.set_value(i, {m.real() * z.real() - m.imag() * z.imag(),
                             m.real() * z.imag() + m.imag() * z.real()});
    }
    execute_weighed(spec, products, products, weights);
    std::vector<std::complex<float>> expected(static_cast<std::size_t>(n));
    for (index_t i = 0; i < products.count(); ++i) {
      const auto m = at(factors, i), z = at(products, i);
      const std::complex<float> product{m.real() * z.real() + m.imag() * z.imag(),
                                        m.real() * z.imag() - m.imag() * z.real()};
      auto& sum = expected[static_cast<std::size_t>(i % n)];
      sum = i < n ? product : sum + product;
    }
    spec.factors = FftFactors{factors.strides()};
    spec.in_place = false;
    spec.in_strides = spec.out_strides = {0};
    for (const index_t stride : x.strides()) spec.in_strides.push_back(stride);
    spec.out_strides = spec.in_strides;
    for (const int threads : {1, 2, 3}) {  // rooms for as many elements along axis 0
      expect_same_on_threads([&] {
        execute_weighed(spec, x, y, weights, &factors, threads);
        return elements(y);
      });
      for (index_t i = 0; i < n; ++i) {
        ASSERT_EQ(at(y, i), expected[static_cast<std::size_t>(i)]) << describe(spec) << " at " << i;
      }
    }
  }
}

TEST(WeightedFft, RefusesFactorsThatDoNotFit) {
  Random random(103);
  Array x(DType::complex64, {2, 4, 6}), y(DType::complex64, {2, 4, 6});
  FftSpec spec = spec_for(x, y, {1, 2});
  spec.factors = FftFactors{{24, 6, 1}};
  EXPECT_THROW(fft_plan(spec), ShapeError) << "no weights";
  spec.weights = FftWeights{false, {24, 6, 1}, {}};
  spec.axes = {0, 1};
  EXPECT_THROW(fft_plan(spec), ShapeError) << "axis 0";
  spec.axes = {2};
  EXPECT_THROW(fft_plan(spec), ShapeError) << "one axis";
  spec.axes = {1, 2};
  spec.factors = FftFactors{{6, 1}};
  EXPECT_THROW(fft_plan(spec), ShapeError) << "strides";
}

TEST(WeightedFft, RefusesSpectraThatDoNotFit) {
  Random random(99);
  Array x(DType::complex64, {4, 6}), y(DType::complex64, {4, 6});
  FftSpec spec = spec_for(x, y, {1});
  for (const Extents& extents : {Extents{4, 5}, {5, 6}, {4}, {4, 6, 1}}) {
    spec.weights = FftWeights{false, {6, 1}, extents};
    EXPECT_THROW(fft_plan(spec), ShapeError) << to_string(extents);
  }
}

// Transforms are the same on all instruction sets; products with weights must be too.
TEST(WeightedFft, BitsAreTheSameOnEveryInstructionSet) {
  Random random(95);
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    for (const bool is_complex : {false, true}) {
      for (const Extents& extents : {Extents{70, 37}, {115, 34}, {3, 67}}) {
        Array x(dtype, extents), y(dtype, extents);
        x.fill_normal(random);
        const Array weights = weights_for(random, extents, dtype, is_complex, true);
        FftSpec spec = spec_for(x, y, {extents[0] == 3 ? 1 : 0});
        spec.centered = true;
        spec.weights = described(weights);
        const auto on = [&](std::int64_t target) {
          const TargetScope scope(target);
          execute(fft_plan(spec), x.address(0), y.address(0), {.weights = weights.address(0)});
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

template <class T>
void expect_conjugate_products_everywhere(Random& random, DType dtype) {
  for (const index_t n : {1, 2, 3, 7, 8, 9, 31, 64}) {
    Array from(dtype, {n}), factors(dtype, {n}), before(dtype, {n});
    for (Array* array : {&from, &factors, &before}) array->fill_normal(random);
    for (const bool adds : {false, true}) {
      const auto on = [&](std::int64_t target) {
        const TargetScope scope(target);
        Array to = before;
        const auto reals = [](const Array& a) {
          return static_cast<const T*>(static_cast<const void*>(a.address(0)));
        };
        multiply(ConjugateProduct<T>{reals(from), reals(factors),
                                     static_cast<T*>(static_cast<void*>(to.address(0))), n, adds});
        return elements(to);
      };
      const auto plain = on(0);
      for (const std::int64_t target : vector_targets()) {
        EXPECT_EQ(on(target), plain) << n << " numbers, target " << target;
      }
    }
  }
}

TEST(WeightedFft, ConjugateProductsHaveTheSameBitsOnEveryInstructionSet) {
  Random random(104);
  expect_conjugate_products_everywhere<float>(random, DType::complex64);
  expect_conjugate_products_everywhere<double>(random, DType::complex128);
}

}  // namespace
}  // namespace palimpsest::testing
