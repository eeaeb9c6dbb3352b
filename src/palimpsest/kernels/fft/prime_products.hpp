// SPDX-License-Identifier: Apache-2.0
// Internal: sums of products of DFTs of prime length, with fewer products.
#pragma once

#include <cstddef>
#include <vector>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/kernels/fft/wide.hpp"

namespace palimpsest {

/// The sums of cosines and of sines in a DFT of prime length p = 2 h + 1. With pairs of elements in
/// the order of the powers of a primitive root, the matrix of cosines depends on the sum of row and
/// column alone and repeats after h, and that of sines changes its sign after h (Rader 1968). Such
/// a matrix of n rows falls into smaller ones by sums and differences of rows: for even n without
/// change of sign into two of n / 2, for n divisible by 3 into one of n / 3 and one of 2 n / 3, as
/// the polynomials x^n - 1 and x^n + 1 do (Winograd 1978). For p = 109, 2,430 products in place of
/// 5,832.
///
/// Works on two arrays of 2 h rows, h for cosines and h for sines: `before` on the first array in
/// place, `products` from the first to the second, `after` on the second in place.
template <class T>
struct PrimeProducts {
  /// Rows a = at + b, of `count`, with those `count` rows and twice as many behind, in place.
  /// Two parts: a + b, a - b. Three parts, before: a - c, b - sign c, a + sign b + c; after: a + c,
  /// b + sign c, c - a - sign b.
  struct Fold {
    int at, count, parts;
    bool is_positive;
  };
  /// Row k of n: the sum over j of factors[k n + j] times row j, from row `at` on.
  struct Product {
    int at, n;
    bool adds_first;  // element 0 of the line is added
    std::vector<T> factors;
  };
  std::vector<Fold> before, after;
  std::vector<Product> products;
  /// The elements of the pairs: k and p - k.
  std::vector<int> pairs;

  explicit PrimeProducts(index_t p);
  /// Factors in all products.
  std::size_t count() const;

 private:
  void add(const std::vector<Wide>& factors, bool is_positive, int at, bool adds_first);
};

}  // namespace palimpsest
