// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/long_line.hpp"

namespace palimpsest {

namespace {

// For shorter lines FFTW's plans are as fast.
constexpr index_t kShortest = 131072;
constexpr index_t kShortestPart = 256, kLongestPart = 8192;
constexpr index_t kLargestPrime = 13;  // FFTW has code for these

bool has_small_primes(index_t n) {
  for (index_t p = 2; p <= kLargestPrime; ++p) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

// The largest divisor of n up to its root for which both lengths are in range; 0: none. Both are
// even for a centered line.
index_t column_length(index_t n, bool centered) {
  if (n < kShortest || !has_small_primes(n)) return 0;
  for (index_t d = kLongestPart; d >= kShortestPart; --d) {
    if (d * d > n || n % d != 0 || n / d > kLongestPart) continue;
    if (!centered || (d % 2 == 0 && n / d % 2 == 0)) return d;
  }
  return 0;
}

}  // namespace

template <class T>
bool LongLine<T>::is_better(index_t n, bool centered) {
  return column_length(n, centered) != 0;
}

template <class T>
LongLine<T>::LongLine(const PassAxis& line, std::vector<PassAxis> others, const Options& options)
    : others_(std::move(others)) {
  const index_t n1 = column_length(line.extent, options.centered), n2 = line.extent / n1;
  const index_t row = scratch_distance<T>(n2);
  twiddles_ = std::make_unique<const LineTwiddles<T>>(line.extent, options.forward,
                                                      options.centered, options.scale);
  typename LinePass<T>::Options pass;
  pass.forward = options.forward;
  pass.effort = options.effort;
  rows_ = LinePass<T>::make(PassAxis{n2, 1, n1 * line.out_stride},
                            std::vector<PassAxis>{{n1, row, line.out_stride}}, pass);
  pass.twiddles = twiddles_.get();
  columns_ = LinePass<T>::make(PassAxis{n1, n2 * line.in_stride, row},
                               std::vector<PassAxis>{{n2, line.in_stride, 1}}, pass);
  scratch_ =
      std::make_unique<KeptScratch>(static_cast<std::size_t>(n1 * row) * sizeof(std::complex<T>));
}
template <class T>
LongLine<T>::~LongLine() = default;

template <class T>
void LongLine<T>::run(const std::complex<T>* x, std::complex<T>* y, const PassOperand&) const {
  index_t n_lines = 1;
  for (const PassAxis& axis : others_) n_lines *= axis.extent;
  scratch_->use([&](std::byte* memory) {
    auto* const between = reinterpret_cast<std::complex<T>*>(memory);
    for (index_t line = 0; line < n_lines; ++line) {
      const std::complex<T>* from = x;
      std::complex<T>* to = y;
      index_t rest = line;
      for (const PassAxis& axis : others_) {
        const index_t position = rest % axis.extent;
        rest /= axis.extent;
        from += position * axis.in_stride;
        to += position * axis.out_stride;
      }
      columns_->run(from, between, {});
      rows_->run(between, to, {});
    }
  });
}

template <class T>
std::size_t LongLine<T>::bytes() const {
  return scratch_->bytes() + twiddles_->bytes() + columns_->bytes() + rows_->bytes();
}

template class LongLine<float>;
template class LongLine<double>;

}  // namespace palimpsest
