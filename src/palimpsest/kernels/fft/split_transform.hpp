// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of lines whose length is a multiple of 16 and a product of small primes.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Lines on both sides of a transform: element j of line c lies at c * line + j * step, in complex
/// numbers. Rows: all `line` are 1. Dense lines: all `step` are 1. On both sides the same.
template <class T>
struct SplitLines {
  const std::complex<T>* x = nullptr;
  std::complex<T>* y = nullptr;
  index_t x_line = 0, x_step = 0, y_line = 0, y_step = 0;
  index_t lines = 0;
  /// Rows: the elements of a line that the array has, the others are 0; elements that are stored.
  /// Dense lines: all.
  index_t given = 0, taken = 0;
  bool forward = true;
  /// Real factors of the elements of a line before the transform, and of those of its result; null:
  /// none.
  const T *before = nullptr, *after = nullptr;
};

/// A pass of butterflies: blocks of `radix` * `distance` rows, row j + q distance for each j.
template <class T>
struct SplitStage {
  int radix;
  index_t distance;
  std::vector<T> twiddles;  // [j][q = 1 .. radix - 1] real and imaginary part; none at distance 1
};

/// y = FFT(x) for lines of n = 4 m elements:
///
///     X[k + m q] = sum_{l<4} w_4^{l q} w_n^{l k} Y_l[k], Y_l the transform of x[l], x[4 + l], ..
///
/// with w_n = exp(-2 pi i / n). Y_l is computed in place by decimation in frequency, which leaves
/// its elements in an order of reversed digits. The last step stores them where they belong, so no
/// pass reorders elements. Real and imaginary parts are in vectors of their own. Vectors hold the
/// same element of neighbouring lines (rows), or four neighbouring elements of lines, one of each
/// Y_l (dense lines). The transform back exchanges the parts of what is loaded and stored.
///
/// The operations on a line and their roundings depend on n alone, so results depend neither on
/// strides and neighbours nor on the width of vectors. Products are rounded before they are added.
///
/// Cost    about 5 n log2 n operations; tables of at most 2 n numbers and n / 4 indices
/// Source  Gentleman & Sande 1966, doi:10.1145/1464291.1464352
template <class T>
class SplitTransform {
 public:
  /// Depends on n alone.
  static bool is_able(index_t n);
  static std::shared_ptr<const SplitTransform> find_or_make(index_t n);
  explicit SplitTransform(index_t n);

  index_t size() const { return n_; }
  std::size_t bytes() const;
  /// Bytes of scratch for `execute`, of rows or of dense lines.
  std::size_t scratch_bytes(bool is_rows = true) const {
    return static_cast<std::size_t>(is_rows ? n_ : n_ / 4) * kRowBytes;
  }
  /// Aliases  x is y with the same strides, or disjoint. Scratch is aligned to 64 bytes
  void execute(const SplitLines<T>& lines, std::byte* scratch) const;

  // Tables that the passes read.
  const std::vector<SplitStage<T>>& stages() const { return stages_; }
  const std::vector<int>& order() const { return order_; }
  const std::vector<T>& joints() const { return joints_; }

 private:
  static constexpr std::size_t kRowBytes = 128;  // two vectors of 512 bits

  index_t n_;
  std::vector<SplitStage<T>> stages_;
  std::vector<int> order_;  // position p of a Y_l holds its element order_[p]
  // w_n^(l k) for four k at a time: [k / 4][l = 1 .. 3] real parts, imaginary parts; in the order
  // of positions of k.
  std::vector<T> joints_;
};

}  // namespace palimpsest
