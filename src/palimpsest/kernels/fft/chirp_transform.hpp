// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of lines whose length has a large prime factor (Bluestein 1970).
#pragma once

#include <vector>

#include "palimpsest/kernels/fft/line_transform.hpp"

namespace palimpsest {

/// y = FFT(x) of n elements as a convolution with a chirp of m >= 2 n - 1 elements, m a product of
/// small primes: y_k = w_k sum over j of (x_j w_j) conj(w_(k-j)), w_j = exp(-i pi j^2 / n).
///
/// Cost  two transforms of m elements; tables of 2 n + 2 m numbers
template <class T>
class ChirpTransform final : public LineTransform<T> {
 public:
  explicit ChirpTransform(index_t n);

  std::size_t bytes() const override;
  std::size_t scratch_bytes(LineLayout layout, index_t lines) const override;
  index_t lines_together(LineLayout layout) const override;
  bool takes_factors() const override { return false; }
  bool is_shared() const override { return inner_->is_shared(); }
  void execute(const TransformLines<T>& lines, std::byte* scratch) const override;

 private:
  // Between lines of scratch that are dense.
  index_t distance() const;
  void execute_rows(const TransformLines<T>& lines, std::complex<T>* padded,
                    std::byte* scratch) const;
  void execute_dense(const TransformLines<T>& lines, std::complex<T>* padded,
                     std::byte* scratch) const;

  std::shared_ptr<const LineTransform<T>> inner_;  // of m elements
  std::vector<T> chirp_re_, chirp_im_, spectrum_re_, spectrum_im_;
};

}  // namespace palimpsest
