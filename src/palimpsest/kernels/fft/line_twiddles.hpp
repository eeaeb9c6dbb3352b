// SPDX-License-Identifier: Apache-2.0
// Internal: roots of unity, and tables of twiddle factors.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// exp(-+ 2 pi i m / n), minus if forward; 0 <= m < n for full precision.
inline std::complex<double> root_of_unity(index_t m, index_t n, bool forward) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(m) / static_cast<double>(n);
  return std::polar(1.0, forward ? -angle : angle);
}

/// Twiddle factors: element k of row r is multiplied by scale e(r k / n), e(t) = exp(-+ 2 pi i t),
/// and optionally by alternating signs along both. Factors are products of entries of two small
/// tables; errors are about two units of the last place of T.
template <class T>
class LineTwiddles {
 public:
  LineTwiddles(index_t n, bool forward, bool alternating, double scale);
  void apply(index_t row, std::complex<T>* line, index_t count) const;
  std::size_t bytes() const;

 private:
  static constexpr index_t kFine = 1024, kGroup = 32;

  std::complex<double> root(index_t m) const;

  index_t n_;
  bool alternating_;
  double scale_;
  std::vector<std::complex<double>> fine_, coarse_;  // e(m / n) for small m, and for m = kFine l
};

}  // namespace palimpsest
