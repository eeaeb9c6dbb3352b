// SPDX-License-Identifier: Apache-2.0
// Internal: numbers of about 106 bits, for the tables of transforms.
#pragma once

#include <cmath>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// The sum of two numbers of double precision.
///
/// Its arithmetic consists of roundings of double precision alone, so tables have the same bits
/// for every processor and compiler; those of long double and of the C library have not.
/// Source   Dekker 1971, doi:10.1007/BF01397083
struct Wide {
  double high = 0, low = 0;

  constexpr Wide() = default;
  constexpr Wide(double given) : high(given) {}
  constexpr Wide(double larger, double smaller) : high(larger), low(smaller) {}
  template <class T>
  requires(sizeof(T) <= sizeof(double)) explicit operator T() const { return static_cast<T>(high); }
};

/// The sum of two numbers, exactly.
inline Wide exact_sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

inline Wide operator-(Wide a) { return {-a.high, -a.low}; }
inline Wide operator+(Wide a, Wide b) {
  const Wide sum = exact_sum(a.high, b.high), rest = exact_sum(a.low, b.low);
  const Wide joined = exact_sum(sum.high, sum.low + rest.high);
  return exact_sum(joined.high, joined.low + rest.low);
}
inline Wide operator-(Wide a, Wide b) { return a + -b; }
inline Wide operator*(Wide a, Wide b) {
  const double product = a.high * b.high;
  const double rest = std::fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
  return exact_sum(product, rest);
}
inline Wide operator/(Wide a, double b) {
  const double first = a.high / b;
  const Wide left = a - Wide(first) * Wide(b);
  return exact_sum(first, left.high / b);
}

struct WideComplex {
  Wide re, im;
};
inline WideComplex operator*(WideComplex a, WideComplex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// exp(-+ 2 pi i j / n), minus if forward; j >= 0.
WideComplex root_of_unity(index_t j, index_t n, bool forward);

}  // namespace palimpsest
