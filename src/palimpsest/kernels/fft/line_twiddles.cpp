// SPDX-License-Identifier: Apache-2.0
// The products are compiled once per instruction set.
#include "palimpsest/kernels/fft/line_twiddles.hpp"

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/line_twiddles.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Computes y[b] *= (re + i im) (b_re[b] + i b_im[b]); y holds pairs.
template <class T>
void times(T re, T im, const T* b_re, const T* b_im, T* y, index_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const auto a_re = hn::Set(d, re), a_im = hn::Set(d, im);
  index_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto u = hn::LoadU(d, b_re + i), v = hn::LoadU(d, b_im + i);
    const auto f_re = hn::Sub(hn::Mul(a_re, u), hn::Mul(a_im, v));
    const auto f_im = hn::Add(hn::Mul(a_re, v), hn::Mul(a_im, u));
    hn::Vec<decltype(d)> x_re, x_im;
    hn::LoadInterleaved2(d, y + 2 * i, x_re, x_im);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(x_re, f_re), hn::Mul(x_im, f_im)),
                          hn::Add(hn::Mul(x_re, f_im), hn::Mul(x_im, f_re)), d, y + 2 * i);
  }
  for (; i < count; ++i) {
    const T f_re = re * b_re[i] - im * b_im[i], f_im = re * b_im[i] + im * b_re[i];
    const T x_re = y[2 * i], x_im = y[2 * i + 1];
    y[2 * i] = x_re * f_re - x_im * f_im;
    y[2 * i + 1] = x_re * f_im + x_im * f_re;
  }
}

}  // namespace

void single_turn(float re, float im, const float* b_re, const float* b_im, float* y,
                 index_t count) {
  times(re, im, b_re, b_im, y, count);
}
void double_turn(double re, double im, const double* b_re, const double* b_im, double* y,
                 index_t count) {
  times(re, im, b_re, b_im, y, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <array>

namespace palimpsest {

HWY_EXPORT(single_turn);
HWY_EXPORT(double_turn);

namespace {

void turn(std::complex<float> a, const float* b_re, const float* b_im, std::complex<float>* y,
          index_t count) {
  HWY_DYNAMIC_DISPATCH(single_turn)
  (a.real(), a.imag(), b_re, b_im, reinterpret_cast<float*>(y), count);
}
void turn(std::complex<double> a, const double* b_re, const double* b_im, std::complex<double>* y,
          index_t count) {
  HWY_DYNAMIC_DISPATCH(double_turn)
  (a.real(), a.imag(), b_re, b_im, reinterpret_cast<double*>(y), count);
}

}  // namespace

template <class T>
LineTwiddles<T>::LineTwiddles(index_t n, bool forward, bool alternating, double scale)
    : n_(n), alternating_(alternating), scale_(scale) {
  for (index_t m = 0; m < kFine; ++m) fine_.push_back(root_of_unity(m, n, forward));
  for (index_t m = 0; m < n; m += kFine) coarse_.push_back(root_of_unity(m, n, forward));
}

template <class T>
std::complex<double> LineTwiddles<T>::root(index_t m) const {
  const auto a = coarse_[static_cast<std::size_t>(m / kFine)];
  const auto b = fine_[static_cast<std::size_t>(m % kFine)];
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
void LineTwiddles<T>::apply(index_t row, std::complex<T>* line, index_t count) const {
  std::array<T, kGroup> re, im;
  const double sign = alternating_ && row % 2 != 0 ? -1 : 1;
  for (index_t b = 0; b < kGroup; ++b) {
    const std::complex<double> w = (alternating_ && b % 2 != 0 ? -1.0 : 1.0) * root(row * b % n_);
    re[static_cast<std::size_t>(b)] = static_cast<T>(w.real());
    im[static_cast<std::size_t>(b)] = static_cast<T>(w.imag());
  }
  for (index_t k = 0; k < count; k += kGroup) {
    const std::complex<double> w = sign * scale_ * root(row * k % n_);
    turn(std::complex<T>(w), re.data(), im.data(), line + k, std::min(kGroup, count - k));
  }
}

template <class T>
std::size_t LineTwiddles<T>::bytes() const {
  return (fine_.size() + coarse_.size()) * sizeof(std::complex<double>);
}

template class LineTwiddles<float>;
template class LineTwiddles<double>;

}  // namespace palimpsest
#endif
