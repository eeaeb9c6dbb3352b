// SPDX-License-Identifier: Apache-2.0
// The products are compiled once per instruction set.
#include "palimpsest/kernels/fft/chirp_line.hpp"

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/chirp_line.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Computes y = x f for `count` numbers, two per element; y may be x.
template <class T>
void times(const T* x, const T* f_re, const T* f_im, T* y, index_t count) {
  const hn::ScalableTag<T> d;
  index_t i = 0;
  if constexpr (hn::MaxLanes(d) > 1) {
    const auto lanes = static_cast<index_t>(hn::Lanes(d));
    for (; i + lanes <= count; i += lanes) {
      const auto v = hn::LoadU(d, x + i);
      const auto turned = hn::Mul(hn::Reverse2(d, v), hn::LoadU(d, f_im + i));
      hn::StoreU(hn::Add(hn::Mul(v, hn::LoadU(d, f_re + i)), turned), d, y + i);
    }
  }
  for (; i < count; i += 2) {
    const T re = x[i] * f_re[i] + x[i + 1] * f_im[i];
    y[i + 1] = x[i + 1] * f_re[i + 1] + x[i] * f_im[i + 1];
    y[i] = re;
  }
}

}  // namespace

void single_times(const float* x, const float* re, const float* im, float* y, index_t count) {
  times(x, re, im, y, count);
}
void double_times(const double* x, const double* re, const double* im, double* y, index_t count) {
  times(x, re, im, y, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <array>
#include <numbers>

#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/kernels/fft/fftw.hpp"

namespace palimpsest {

HWY_EXPORT(single_times);
HWY_EXPORT(double_times);

namespace {

// Shorter lines are transformed several at a time, longer ones do not fit the scratch.
constexpr index_t kShortest = 64, kLongest = 2048, kLongestPadded = 4096;
// FFTW has code for factors up to 13, and is nearly as fast for slightly larger ones.
template <class T>
constexpr index_t kLeastPrime = sizeof(T) == sizeof(float) ? 23 : 29;

// The smallest 2^k, 3 2^k or 5 2^k that is long enough. Other products of small primes take half as
// long again per element, which outweighs their shorter length.
index_t padded_length(index_t n) {
  index_t best = kLongestPadded;
  for (const index_t odd : {1, 3, 5}) {
    index_t m = 32 * odd;
    while (m < 2 * n - 1) m *= 2;
    best = std::min(best, m);
  }
  return best;
}

// Raw bytes: an array of numbers would be zeroed each time.
template <class T>
struct ChirpMemory {
  alignas(64) std::array<std::byte, 2 * kLongestPadded * sizeof(std::complex<T>)> bytes;
};

void multiply(const float* x, const float* re, const float* im, float* y, index_t count) {
  HWY_DYNAMIC_DISPATCH(single_times)(x, re, im, y, count);
}
void multiply(const double* x, const double* re, const double* im, double* y, index_t count) {
  HWY_DYNAMIC_DISPATCH(double_times)(x, re, im, y, count);
}

template <class T>
void put(std::complex<double> f, std::vector<T>& re, std::vector<T>& im) {
  re.insert(re.end(), 2, static_cast<T>(f.real()));
  im.push_back(static_cast<T>(-f.imag()));
  im.push_back(static_cast<T>(f.imag()));
}

}  // namespace

index_t largest_prime_factor(index_t n) {
  index_t largest = 1;
  for (index_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

template <class T>
bool ChirpLine<T>::is_better(index_t n) {
  return n >= kShortest && n <= kLongest && largest_prime_factor(n) >= kLeastPrime<T>;
}

template <class T>
ChirpLine<T>::ChirpLine(index_t n, bool forward, FftEffort effort)
    : n_(n),
      m_(padded_length(n)),
      forward_(std::make_unique<const LinePlan<T>>(m_, 1, m_, true, effort)),
      backward_(std::make_unique<const LinePlan<T>>(m_, 1, m_, false, effort)) {
  const auto chirp = [&](index_t j) {
    const double angle =
        std::numbers::pi * static_cast<double>(j * j % (2 * n)) / static_cast<double>(n);
    return std::polar(1.0, forward ? -angle : angle);
  };
  for (index_t j = 0; j < n; ++j) put(chirp(j), chirp_re_, chirp_im_);
  // In double precision for every T.
  const LinePlan<double> transform(m_, 1, m_, true, FftEffort::estimate);
  const FftMemory memory(static_cast<std::size_t>(2 * m_) * sizeof(std::complex<double>));
  auto* const b = reinterpret_cast<std::complex<double>*>(memory.data());
  std::fill_n(b, m_, 0.0);
  for (index_t j = 0; j < n; ++j) b[j] = b[(m_ - j) % m_] = std::conj(chirp(j));
  transform.execute(b, b + m_);
  for (index_t k = 0; k < m_; ++k) {
    put(b[m_ + k] / static_cast<double>(m_), spectrum_re_, spectrum_im_);
  }
}
template <class T>
ChirpLine<T>::~ChirpLine() = default;

template <class T>
void ChirpLine<T>::execute(const std::complex<T>* in, std::complex<T>* out) const {
  const Scratched<ChirpMemory<T>> memory;
  auto* const padded = reinterpret_cast<std::complex<T>*>(memory->bytes.data());
  std::complex<T>* const spectrum = padded + m_;
  const auto numbers = [](auto* z) { return reinterpret_cast<T*>(z); };
  multiply(reinterpret_cast<const T*>(in), chirp_re_.data(), chirp_im_.data(), numbers(padded),
           2 * n_);
  std::fill(padded + n_, padded + m_, std::complex<T>(0));
  forward_->execute(padded, spectrum);
  multiply(numbers(spectrum), spectrum_re_.data(), spectrum_im_.data(), numbers(spectrum), 2 * m_);
  backward_->execute(spectrum, padded);
  multiply(numbers(padded), chirp_re_.data(), chirp_im_.data(), numbers(out), 2 * n_);
}

template class ChirpLine<float>;
template class ChirpLine<double>;

}  // namespace palimpsest
#endif
