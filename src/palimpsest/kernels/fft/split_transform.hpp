// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of lines of up to 1,024 elements without large prime factors.
#pragma once

#include <optional>
#include <vector>

#include "palimpsest/kernels/fft/line_transform.hpp"
#include "palimpsest/kernels/fft/prime_products.hpp"

namespace palimpsest {

/// The largest prime factor of lengths without chirps.
inline constexpr index_t kLargestPrime = 127;

/// A pass of butterflies: blocks of `radix` * `distance` rows, row j + q distance for each j.
template <class T>
struct SplitStage {
  int radix;
  index_t distance;
  std::vector<T> twiddles;  // [j][q = 1 .. radix - 1] real and imaginary part; none at distance 1
  std::optional<PrimeProducts<T>> products;  // of a prime radix from 11 on
};

/// y = FFT(x) for lines of n elements, in place by decimation in frequency, which leaves elements
/// in an order of reversed digits; the last step stores them where they belong. Real and imaginary
/// parts are in vectors of their own. Vectors hold the same element of neighbouring lines (rows);
/// dense lines are transposed to rows in squares of 4 as they are loaded, and back.
///
/// If 4 divides n, n = 4 m, and from 16 on, lines are joined of four:
///
///     X[k + m q] = sum_{l<4} w_4^{l q} w_n^{l k} Y_l[k], Y_l the transform of x[l], x[4 + l], ..
///
/// with w_n = exp(-2 pi i / n). Then vectors of dense lines hold four neighbouring elements, one of
/// each Y_l, and are transposed once only, in the last step.
///
/// Cost    about 5 n log2 n operations; tables of at most 2 n numbers, n indices, and p^2 / 2
///         numbers for each prime factor p from 11 on
/// Source  Gentleman & Sande 1966, doi:10.1145/1464291.1464352
template <class T>
class SplitTransform final : public LineTransform<T> {
 public:
  static bool is_able(index_t n);
  explicit SplitTransform(index_t n);

  std::size_t bytes() const override;
  std::size_t scratch_bytes(LineLayout layout, index_t lines) const override;
  index_t lines_together(LineLayout layout) const override;
  void execute(const TransformLines<T>& lines, std::byte* scratch) const override;

  // Tables that the passes read.
  bool is_joined() const { return !joints_.empty(); }
  /// Rows of a transform in place: n, or n / 4 of each Y_l.
  index_t rows() const { return is_joined() ? this->size() / 4 : this->size(); }
  const std::vector<SplitStage<T>>& stages() const { return stages_; }
  /// Position of element k. Joined: of a Y_l.
  const std::vector<int>& places() const { return places_; }
  /// First elements k of groups of four of the Y_l, which are joined at once; the last one may
  /// overlap the others. Groups are in the order of positions if that is one for all four.
  const std::vector<int>& groups() const { return groups_; }
  const std::vector<T>& joints() const { return joints_; }

 private:
  static constexpr std::size_t kRowBytes = 128;  // two vectors of 512 bits

  void run(const TransformLines<T>& lines, std::byte* scratch) const;

  std::vector<SplitStage<T>> stages_;
  index_t spare_rows_ = 0;  // scratch of a prime radix
  std::vector<int> places_, groups_;
  // w_n^(l k) for groups of four k: [l = 1 .. 3] real parts, imaginary parts. Empty if not joined.
  std::vector<T> joints_;
};

}  // namespace palimpsest
