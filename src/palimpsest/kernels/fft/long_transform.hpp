// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of long lines as matrices.
#pragma once

#include <vector>

#include "palimpsest/kernels/fft/line_transform.hpp"

namespace palimpsest {

/// y = FFT(x) for lines of n = n1 n2 elements: with j = n2 j1 + j2, k = k1 + n1 k2 and
/// e(t) = exp(-2 pi i t),
///
///     y[k] = sum_j2 e(j2 k2 / n2) e(j2 k1 / n) sum_j1 e(j1 k1 / n1) x[j].
///
/// Of a dense line, both sums take rows: neighbouring j2, then neighbouring k1, in the lanes of
/// vectors. Lines side by side take them instead. From 32,768 elements on threads share a line.
///
/// Cost     tables of 2 n numbers; scratch of the lines that are transformed together
/// Source   Bailey 1990, doi:10.1007/BF00162341
template <class T>
class LongTransform final : public LineTransform<T> {
 public:
  /// Has n small prime factors?
  static bool is_able(index_t n);
  explicit LongTransform(index_t n);

  std::size_t bytes() const override;
  std::size_t scratch_bytes(LineLayout layout, index_t lines) const override;
  index_t lines_together(LineLayout layout) const override;
  bool is_shared() const override;
  void execute(const TransformLines<T>& lines, std::byte* scratch) const override;

 private:
  // Places where tasks work: the matrix between both sums, and scratch of each task.
  struct Room {
    std::size_t matrix_bytes, task_bytes;
    index_t row;  // between rows of the matrix
    index_t n_tasks;
  };
  Room room(LineLayout layout, index_t lines) const;
  // Calls f(begin, end, scratch) for parts of [0, count), multiples of `grain` long.
  template <class F>
  void share(const Room& room, std::byte* scratch, index_t count, index_t grain, const F& f) const;
  // Both sums, with the factors of the lines, of which the first ones are signs: (-1)^j is that of
  // n2 j1 times that of j2, and (-1)^k that of k1 times that of n1 k2.
  struct Sums {
    TransformLines<T> columns, rows;
  };
  Sums sums(const TransformLines<T>& lines) const;
  void execute_rows(const TransformLines<T>& lines, std::byte* scratch) const;
  void execute_dense(const TransformLines<T>& line, std::byte* scratch) const;

  std::shared_ptr<const LineTransform<T>> columns_, rows_;  // of n1 and of n2 elements
  std::vector<std::complex<T>> turns_;  // e(j2 k1 / n): [k1][j2]; behind them room for a vector
};

}  // namespace palimpsest
