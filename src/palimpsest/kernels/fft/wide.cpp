// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/wide.hpp"

#include <array>
#include <utility>

namespace palimpsest {
namespace {

constexpr Wide kQuarterOfPi = {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55};
constexpr int kTerms = 14;

// (-1)^k t^(2 k + first) / (2 k + first)!, for |t| <= pi / 4.
Wide series(Wide t, int first) {
  static const auto factorials = [] {
    std::array<Wide, 2 * kTerms> inverse;
    inverse[0] = 1;
    for (std::size_t k = 1; k < inverse.size(); ++k) {
      inverse[k] = inverse[k - 1] / static_cast<double>(k);
    }
    return inverse;
  }();
  const Wide square = t * t;
  Wide sum;
  for (int k = kTerms; k-- > 0;) {
    sum = factorials[static_cast<std::size_t>(2 * k + first)] - square * sum;
  }
  return first == 0 ? sum : t * sum;
}

}  // namespace

// Eighths of a turn are taken off exactly, so that quarters are exact.
WideComplex root_of_unity(index_t j, index_t n, bool forward) {
  j %= n;
  const index_t eighth = 8 * j / n, rest = 8 * j - eighth * n;
  const bool is_mirrored = eighth % 2 == 1;
  const Wide part = Wide(static_cast<double>(is_mirrored ? n - rest : rest));
  const Wide angle = kQuarterOfPi * (part / static_cast<double>(n));
  Wide re = series(angle, 0), im = series(angle, 1);
  if (is_mirrored) std::swap(re, im);
  for (index_t i = 0; i < eighth / 2; ++i) re = -std::exchange(im, re);
  return {re, forward ? -im : im};
}

}  // namespace palimpsest
