// SPDX-License-Identifier: Apache-2.0
// Transforms by the definition, and comparison with them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "kernels/arrays.hpp"
#include "palimpsest/kernels/fft/fft.hpp"

namespace palimpsest::testing {

using Wide = std::complex<double>;

inline FftSpec spec_for(const Array& x, const Array& y, Axes axes) {
  FftSpec spec;
  spec.dtype = x.dtype();
  spec.extents = x.extents();
  spec.in_strides = x.strides();
  spec.out_strides = y.strides();
  spec.axes = std::move(axes);
  return spec;
}

// An axis at a time, by the definition.
inline std::vector<Wide> naive(const FftSpec& spec, const Array& x) {
  std::vector<Wide> values;
  for (index_t i = 0; i < x.count(); ++i) values.push_back(x.value(i));
  for (const index_t axis : spec.axes) {
    const auto a = static_cast<std::size_t>(axis);
    const index_t n = spec.extents[a], c = spec.centered ? n / 2 : 0;
    index_t stride = 1;
    for (std::size_t i = a + 1; i < spec.extents.size(); ++i) stride *= spec.extents[i];
    std::vector<Wide> roots;
    for (index_t j = 0; j < n; ++j) {
      const double turns = static_cast<double>(j) / static_cast<double>(n);
      roots.push_back(std::polar(1.0, 2 * std::numbers::pi * turns * (spec.forward ? -1 : 1)));
    }
    std::vector<Wide> result(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const index_t k = static_cast<index_t>(i) / stride % n;
      const Wide* value = values.data() + (static_cast<index_t>(i) - k * stride);
      const index_t step = ((k - c) % n + n) % n;
      index_t root = (n - c) * step % n;
      double re = 0, im = 0;
      for (index_t j = 0; j < n; ++j, value += stride) {
        const Wide z = *value, w = roots[static_cast<std::size_t>(root)];
        re += z.real() * w.real() - z.imag() * w.imag();
        im += z.real() * w.imag() + z.imag() * w.real();
        root += step;
        if (root >= n) root -= n;
      }
      result[i] = {re, im};
    }
    values = result;
  }
  for (Wide& v : values) v *= spec.scale;
  return values;
}

inline void expect_close(const Array& y, const std::vector<Wide>& expected,
                         const std::string& what) {
  double largest = 0, error = 0;
  for (index_t i = 0; i < y.count(); ++i) {
    largest = std::max(largest, std::abs(expected[static_cast<std::size_t>(i)]));
    error = std::max(error, std::abs(y.value(i) - expected[static_cast<std::size_t>(i)]));
  }
  const double eps = y.dtype() == DType::complex64 ? 6e-8 : 1.2e-16;
  EXPECT_LE(error, 20 * eps * (largest + 1)) << what;
}

/// Some axes, three at most, in any order.
inline Axes random_axes(Random& random, const Extents& extents) {
  Axes axes;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (axes.size() < 3 && uniform(random, 0, 2) > 0) axes.push_back(static_cast<index_t>(i));
  }
  std::shuffle(axes.begin(), axes.end(), random);
  return axes;
}

inline std::string describe(const FftSpec& s) {
  return to_string(s.extents) + " axes " + to_string(s.axes) + " in " + to_string(s.in_strides) +
         " out " + to_string(s.out_strides) + (s.forward ? " forward" : " backward") +
         (s.centered ? " centered" : "") + (s.in_place ? " in place" : "");
}

}  // namespace palimpsest::testing
