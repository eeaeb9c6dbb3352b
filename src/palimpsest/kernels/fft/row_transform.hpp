// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of many lines side by side whose length has a prime factor that FFTW has no
// code for.
#pragma once

#include <complex>
#include <memory>
#include <optional>
#include <vector>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/kernels/fft/prime_products.hpp"

namespace palimpsest {

/// DFTs of `length` rows each, row k of a group from all of its rows.
template <class T>
struct RowStep {
  index_t length = 1;
  /// Rows of the groups, one group after the other, in two arrays. A group's results may take the
  /// place of its rows.
  std::vector<int> from, to;
  /// cos and sin of 2 pi j k / length, for k and j of 1 .. length / 2, k outside.
  std::vector<T> cosines, sines;
  /// In place of these. Rows of a group are then in the order of its pairs.
  std::optional<PrimeProducts<T>> products;

  /// Rows of scratch.
  index_t scratch_rows() const { return products ? 2 * length - 1 : 1 + 2 * (length / 2); }
};

/// Source and destination of a step; x_step and y_step are the strides between rows, in elements.
template <class T>
struct RowArrays {
  const T* x;
  index_t x_step;
  T* y;
  index_t y_step;
};

/// y = FFT(x) along lines of n elements, of many lines side by side: row j holds element j of each.
///
/// n = p q without a common factor, p and q small, needs DFTs of p rows and of q rows, and no
/// factors between them (Good 1958, Thomas 1963). These are sums of products with cosines and
/// sines. Sums and differences of x_j and x_(p-j) halve the number of products, and vectors hold
/// neighbouring lines. Columns of 230 = 23 x 10 complex64 take 2 ns per element, with ChirpLine 6,
/// with FFTW 9; of 218 = 109 x 2 2.5, 6 to 7, and 17.
///
/// Cost  (p + q) n real multiplications and additions for each line, fewer with PrimeProducts
template <class T>
class RowTransform {
 public:
  /// Is it faster than FFTW and chirps? Depends on n alone, so results keep their bits.
  static bool is_better(index_t n);
  static std::shared_ptr<const RowTransform> find_or_make(index_t n, bool forward);
  RowTransform(index_t n, bool forward);

  /// The lines of a panel are a multiple of this number, since rows are whole vectors.
  static constexpr index_t kLines = 16 / (2 * sizeof(T));
  /// Rows of `lines` numbers each: results between both steps, n of them, and scratch.
  index_t rows() const { return n_ + scratch_rows_; }
  /// Rows of complex numbers, those of a row one after the other.
  struct Rows {
    std::complex<T>* first;
    index_t step;
  };
  /// `rows` has rows() rows; its first n may be those of y. x and y may be the same. Bits do not
  /// depend on `lines`. Safe from several threads.
  void execute(Rows x, Rows y, std::complex<T>* rows, index_t lines) const;

 private:
  index_t n_, scratch_rows_ = 0;
  std::vector<RowStep<T>> steps_;
};

}  // namespace palimpsest
