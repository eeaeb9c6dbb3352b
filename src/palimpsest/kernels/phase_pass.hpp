// SPDX-License-Identifier: Apache-2.0
// Internal: products with separable phases, in one pass.
#pragma once

#include <complex>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// y[j] = constant * x[j] * (product over the axes of their phase at j_d).
template <class T>
struct PhasePass {
  struct Axis {
    index_t extent = 1, in_stride = 0, out_stride = 0;  // strides in elements
    /// One factor per index, or none: all ones. Real ones if `is_real`.
    std::vector<T> signs = {};
    std::vector<std::complex<T>> phases = {};
  };

  std::vector<Axis> axes;
  std::complex<T> constant{1};
  bool is_real = true;  // all factors are real, and kept in `signs`

  bool is_identity() const;
  std::size_t table_bytes() const;
  /// Orders the axes by their strides in y; unites those without phases.
  void prepare();
  /// Aliases  y is x with the same strides, or disjoint
  void run(const std::complex<T>* x, std::complex<T>* y) const;
};

}  // namespace palimpsest
