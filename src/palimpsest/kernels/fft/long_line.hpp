// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of lines that do not fit the caches of a core.
#pragma once

#include <memory>
#include <vector>

#include "palimpsest/kernels/fft/line_pass.hpp"

namespace palimpsest {

/// y = scale * FFT(x) for every line along one axis, of n = n1 n2 elements: with j = n2 j1 + j2,
/// k = k1 + n1 k2 and e(t) = exp(-+ 2 pi i t),
///
///     y[k] = scale sum_j2 e(j2 k2 / n2) e(j2 k1 / n) sum_j1 e(j1 k1 / n1) x[j].
///
/// Two passes of short lines, of n1 and of n2 elements, go over memory once each; FFTW's plans of
/// long lines go over memory several times in large strides. Threads share a line.
///
/// Cost     scratch of one line, kept; 2^20 complex64 take 11 ms where a plan of FFTW took 23
///          (AVX-512)
/// Source   Bailey 1990, doi:10.1007/BF00162341
template <class T>
class LongLine final : public ArrayPass<T> {
 public:
  struct Options {
    bool forward = true;
    bool centered = false;
    double scale = 1;
    FftEffort effort = FftEffort::estimate;
  };
  /// Is this faster than a LinePass for lines of n elements?
  static bool is_better(index_t n, bool centered);
  /// `others`: the axes along which lines repeat.
  LongLine(const PassAxis& line, std::vector<PassAxis> others, const Options& options);
  ~LongLine() override;

  void run(const std::complex<T>* x, std::complex<T>* y, const PassOperand& operand) const override;
  std::size_t bytes() const override;

 private:
  std::vector<PassAxis> others_;
  std::unique_ptr<const LineTwiddles<T>> twiddles_;
  std::unique_ptr<const LinePass<T>> columns_, rows_;
  std::unique_ptr<KeptScratch> scratch_;
};

}  // namespace palimpsest
