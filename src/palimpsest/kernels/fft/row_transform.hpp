// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of many lines side by side whose length has a prime factor that FFTW has no
// code for.
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// DFTs of `length` rows each, row k of a group from all of its rows. Rows are numbered within one
/// piece of memory.
template <class T>
struct RowStep {
  index_t length = 1;
  /// Rows of the groups, one group after the other. A group's results may take the place of its
  /// rows.
  std::vector<int> from, to;
  /// cos and sin of 2 pi j k / length, for k and j of 1 .. length / 2, k outside.
  std::vector<T> cosines, sines;
};

/// y = FFT(x) along lines of n elements, of many lines side by side: row j holds element j of each.
///
/// n = p q without a common factor, p and q small, needs DFTs of p rows and of q rows, and no
/// factors between them (Good 1958, Thomas 1963). These are sums of products with cosines and
/// sines. Sums and differences of x_j and x_(p-j) halve the number of products, and vectors hold
/// neighbouring lines. Columns of 230 = 23 x 10 complex64 take 2 to 2.5 ns per element, with
/// ChirpLine 6, with FFTW 9; of 218 = 109 x 2 4 to 5, 6 to 7, and 17.
///
/// Cost  (p + q) n real multiplications and additions for each line
template <class T>
class RowTransform {
 public:
  /// Is it faster than FFTW and chirps? Depends on n alone, so results keep their bits.
  static bool is_better(index_t n);
  static std::shared_ptr<const RowTransform> find_or_make(index_t n, bool forward);
  RowTransform(index_t n, bool forward);

  /// The lines of a panel are a multiple of this number, since rows are whole vectors.
  static constexpr index_t kLines = 16 / (2 * sizeof(T));
  /// Rows of `execute`: x, y, then scratch.
  index_t rows() const { return 2 * n_ + scratch_rows_; }
  /// From rows 0 .. n - 1 to rows n .. 2 n - 1; others are scratch. A row is `lines` complex
  /// numbers one after the other; bits do not depend on how many. Safe from several threads.
  void execute(std::complex<T>* rows, index_t lines) const;

 private:
  index_t n_, scratch_rows_ = 0;
  std::vector<RowStep<T>> steps_;
};

}  // namespace palimpsest
