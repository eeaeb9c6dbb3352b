// SPDX-License-Identifier: Apache-2.0
// The products are compiled once per instruction set.
#include "palimpsest/kernels/fft/line_products.hpp"

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/line_products.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void multiply_line(const LineProduct<T>& p) {
  const T* const x = reinterpret_cast<const T*>(p.x);
  T* const y = reinterpret_cast<T*>(p.y);
  const T sign = p.conjugates ? T{-1} : T{1};
  index_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const auto signs = hn::Set(d, sign);
  for (; j + lanes <= p.count; j += lanes) {
    const auto re = hn::LoadU(d, p.re + j), im = hn::Mul(hn::LoadU(d, p.im + j), signs);
    hn::Vec<decltype(d)> x_re, x_im;
    hn::LoadInterleaved2(d, x + 2 * j, x_re, x_im);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(x_re, re), hn::Mul(x_im, im)),
                          hn::Add(hn::Mul(x_re, im), hn::Mul(x_im, re)), d, y + 2 * j);
  }
#endif
  for (; j < p.count; ++j) {
    const T re = p.re[j], im = p.im[j] * sign, x_re = x[2 * j], x_im = x[2 * j + 1];
    y[2 * j] = x_re * re - x_im * im;
    y[2 * j + 1] = x_re * im + x_im * re;
  }
}

template <class T>
void multiply_rows(const RowProduct<T>& p) {
  const T sign = p.line.conjugates ? T{-1} : T{1};
  for (index_t j = 0; j < p.line.count; ++j) {
    const T* const x = reinterpret_cast<const T*>(p.line.x + j * p.x_step);
    T* const y = reinterpret_cast<T*>(p.line.y + j * p.y_step);
    const T re = p.line.re[j], im = p.line.im[j] * sign;
    index_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<index_t>(hn::Lanes(d));
    const auto by_re = hn::Set(d, re);
    const auto by_im = hn::OddEven(hn::Set(d, im), hn::Set(d, -im));
    for (; i + lanes <= 2 * p.width; i += lanes) {
      const auto z = hn::LoadU(d, x + i);
      hn::StoreU(hn::Add(hn::Mul(z, by_re), hn::Mul(hn::Reverse2(d, z), by_im)), d, y + i);
    }
#endif
    for (; i < 2 * p.width; i += 2) {
      const T x_re = x[i], x_im = x[i + 1];
      y[i] = x_re * re - x_im * im;
      y[i + 1] = x_re * im + x_im * re;
    }
  }
}

void single_line(const LineProduct<float>& p) { multiply_line(p); }
void double_line(const LineProduct<double>& p) { multiply_line(p); }
void single_rows(const RowProduct<float>& p) { multiply_rows(p); }
void double_rows(const RowProduct<double>& p) { multiply_rows(p); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(single_line);
HWY_EXPORT(double_line);
HWY_EXPORT(single_rows);
HWY_EXPORT(double_rows);

void multiply(const LineProduct<float>& p) { HWY_DYNAMIC_DISPATCH(single_line)(p); }
void multiply(const LineProduct<double>& p) { HWY_DYNAMIC_DISPATCH(double_line)(p); }
void multiply(const RowProduct<float>& p) { HWY_DYNAMIC_DISPATCH(single_rows)(p); }
void multiply(const RowProduct<double>& p) { HWY_DYNAMIC_DISPATCH(double_rows)(p); }

}  // namespace palimpsest
#endif
