// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numbers>

#include "linop/linop_support.hpp"

namespace palimpsest::testing {

/// n random locations in cycles per field of view, slightly beyond the nominal range.
inline Tensor trajectory(const Extents& image, index_t n, DType dtype = DType::float64) {
  const auto ndim = static_cast<index_t>(image.size());
  Tensor t = Tensor::random_uniform({n, ndim}, DType::float64, {31, 1});
  auto* k = static_cast<double*>(t.raw_mutable_data());
  for (index_t i = 0; i < n * ndim; ++i) {
    k[i] = (1.2 * k[i] - 0.6) * static_cast<double>(image[static_cast<std::size_t>(i % ndim)]);
  }
  return t.to(dtype);
}

/// The matrix of the exact transform of locations (points, D): scale ortho.
inline Matrix exact_nufft(const Tensor& locs, const Extents& image, double sign = -1) {
  const auto k = locs.to(DType::float64).to_vector<double>();
  const std::size_t ndim = image.size();
  const auto columns = static_cast<std::size_t>(element_count(image));
  return matrix(k.size() / ndim, columns, [&](std::size_t p, std::size_t i) {
    double cycles = 0;
    std::size_t rest = i;
    for (std::size_t d = ndim; d-- > 0;) {
      const auto n = static_cast<std::size_t>(image[d]);
      const double position = static_cast<double>(rest % n) - static_cast<double>(n / 2);
      cycles += k[p * ndim + d] * position / static_cast<double>(n);
      rest /= n;
    }
    return std::polar(1 / std::sqrt(static_cast<double>(columns)),
                      sign * 2 * std::numbers::pi * cycles);
  });
}

}  // namespace palimpsest::testing
