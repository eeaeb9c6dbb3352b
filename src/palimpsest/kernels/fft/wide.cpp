// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/wide.hpp"

#include <utility>

namespace palimpsest {
namespace {

constexpr Wide kQuarterOfPi = {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55};
constexpr int kTerms = 14;

// The cosine (first 0) or sine (first 1) of |t| <= pi / 4 by its series, from the inside.
Wide series(Wide t, int first) {
  const Wide square = t * t;
  Wide sum = 1;
  for (int k = kTerms; k > 0; --k) {
    const int last = 2 * k + first;
    sum = Wide(1) - square * sum / static_cast<double>(last * (last - 1));
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
