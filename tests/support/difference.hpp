// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::testing {

/// a - b| / |b| of f(element) in double precision; infinite if the numbers of elements differ.
template <class F>
double difference_of(const Tensor& a, const Tensor& b, F f) {
  const auto u = a.to(DType::complex128).contiguous().to_vector<std::complex<double>>();
  const auto v = b.to(DType::complex128).contiguous().to_vector<std::complex<double>>();
  if (u.size() != v.size()) return std::numeric_limits<double>::infinity();
  double distance = 0, size = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    distance += std::norm(f(u[i]) - f(v[i]));
    size += std::norm(f(v[i]));
  }
  return distance == 0 ? 0 : std::sqrt(distance / size);
}

inline double difference(const Tensor& a, const Tensor& b) {
  return difference_of(a, b, [](std::complex<double> z) { return z; });
}
inline double difference_of_magnitudes(const Tensor& a, const Tensor& b) {
  return difference_of(a, b, [](std::complex<double> z) { return std::abs(z); });
}

}  // namespace palimpsest::testing
