// SPDX-License-Identifier: Apache-2.0
// Products with weights, compiled once per instruction set.
#include "palimpsest/kernels/fft/panel_weights.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/panel_weights.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_TILES_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Computes to = scale * w * from for n complex numbers, given as 2 n real ones.

// w[j] is the weight of number j.
template <class T>
HWY_INLINE void times_dense(const T* from, const T* w, T scale, T* to, index_t n) {
  index_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<T, float>) {
    const hn::ScalableTag<float> d;
    const hn::Repartition<std::uint64_t, decltype(d)> twice;
    const hn::Rebind<std::uint32_t, decltype(twice)> half;
    const auto lanes = static_cast<index_t>(hn::Lanes(twice));
    const auto factor = hn::Set(d, scale);
    for (; i + lanes <= n; i += lanes) {
      const auto bits = hn::PromoteTo(
          twice, hn::LoadU(half, reinterpret_cast<const std::uint32_t*>(w + i)));  // NOLINT
      const auto both = hn::BitCast(d, hn::Or(bits, hn::ShiftLeft<32>(bits)));
      hn::StoreU(hn::Mul(hn::LoadU(d, from + 2 * i), hn::Mul(both, factor)), d, to + 2 * i);
    }
  }
#endif
  for (; i < n; ++i) {
    const T weight = w[i] * scale;
    to[2 * i] = from[2 * i] * weight;
    to[2 * i + 1] = from[2 * i + 1] * weight;
  }
}

// w[2 j], w[2 j + 1] is the weight of number j.
template <class T>
HWY_INLINE void times_complex(const T* from, const T* w, T scale, T* to, index_t n) {
  index_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  for (; lanes > 1 && i + lanes <= 2 * n; i += lanes) {
    const auto weight = hn::Mul(hn::LoadU(d, w + i), factor), z = hn::LoadU(d, from + i);
    const auto by_re = hn::Mul(z, hn::DupEven(weight));
    const auto by_im = hn::Mul(hn::Reverse2(d, z), hn::DupOdd(weight));
    hn::StoreU(hn::OddEven(hn::Add(by_re, by_im), hn::Sub(by_re, by_im)), d, to + i);
  }
#endif
  for (; i < 2 * n; i += 2) {
    const T re = w[i] * scale, im = w[i + 1] * scale, x = from[i], y = from[i + 1];
    to[i] = x * re - y * im;
    to[i + 1] = y * re + x * im;
  }
}

template <class T>
HWY_INLINE void multiply_conjugate(const ConjugateProduct<T>& p) {
  index_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  for (; lanes > 1 && i + lanes <= 2 * p.n; i += lanes) {
    const auto factor = hn::LoadU(d, p.factors + i), z = hn::LoadU(d, p.from + i);
    const auto by_re = hn::Mul(z, hn::DupEven(factor));
    const auto by_im = hn::Mul(hn::Reverse2(d, z), hn::DupOdd(factor));
    auto product = hn::OddEven(hn::Sub(by_re, by_im), hn::Add(by_re, by_im));
    if (p.adds) product = hn::Add(hn::LoadU(d, p.to + i), product);
    hn::StoreU(product, d, p.to + i);
  }
#endif
  for (; i < 2 * p.n; i += 2) {
    const T re = p.factors[i], im = p.factors[i + 1], x = p.from[i], y = p.from[i + 1];
    const T product[] = {x * re + y * im, y * re - x * im};
    p.to[i] = p.adds ? p.to[i] + product[0] : product[0];
    p.to[i + 1] = p.adds ? p.to[i + 1] + product[1] : product[1];
  }
}

template <class T>
HWY_INLINE void multiply_weighted(const WeightedNumbers<T>& p) {
  if (p.is_complex) {
    times_complex(p.from, p.weights, p.scale, p.to, p.n);
  } else {
    times_dense(p.from, p.weights, p.scale, p.to, p.n);
  }
}

void multiply_single(const WeightedNumbers<float>& p) { multiply_weighted(p); }
void multiply_double(const WeightedNumbers<double>& p) { multiply_weighted(p); }
void conjugate_single(const ConjugateProduct<float>& p) { multiply_conjugate(p); }
void conjugate_double(const ConjugateProduct<double>& p) { multiply_conjugate(p); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(multiply_single);
HWY_EXPORT(multiply_double);
HWY_EXPORT(conjugate_single);
HWY_EXPORT(conjugate_double);

void multiply(const WeightedNumbers<float>& p) { HWY_DYNAMIC_DISPATCH(multiply_single)(p); }
void multiply(const WeightedNumbers<double>& p) { HWY_DYNAMIC_DISPATCH(multiply_double)(p); }
void multiply(const ConjugateProduct<float>& p) { HWY_DYNAMIC_DISPATCH(conjugate_single)(p); }
void multiply(const ConjugateProduct<double>& p) { HWY_DYNAMIC_DISPATCH(conjugate_double)(p); }

template <class T>
template <class W>
void PanelWeights<T>::apply_as(const W* weights, index_t line, W* memory,
                               std::complex<T>* z) const {
  weights += panel_.at(line);
  for (index_t j = 0; j < line_.extent; ++j) memory[j] = weights[line_.at(j)];
  multiply(WeightedNumbers<T>{reals(z), reinterpret_cast<const T*>(memory), reals(z), line_.extent,
                              is_complex_, scale_});
}

template <class T>
void PanelWeights<T>::apply(const void* weights, index_t line, std::byte* memory,
                            std::complex<T>* z) const {
  if (is_complex_) {
    apply_as(static_cast<const std::complex<T>*>(weights), line,
             reinterpret_cast<std::complex<T>*>(memory), z);
  } else {
    apply_as(static_cast<const T*>(weights), line, reinterpret_cast<T*>(memory), z);
  }
}

template <class T>
void PanelWeights<T>::apply_across(const void* weights, index_t j, index_t first, index_t lines,
                                   const std::complex<T>* from, std::complex<T>* to) const {
  const index_t in_weight = is_complex_ ? 2 : 1;
  const T* const row = static_cast<const T*>(weights) + line_.at(j) * in_weight;
  const index_t turn = panel_.extent - panel_.shift;  // the line whose weights begin their array
  index_t together = 1;
  for (index_t c = 0; c < lines; c += together) {
    const index_t line = first + c, rest = lines - c;
    if (panel_.stride == 1) together = line < turn ? std::min(turn - line, rest) : rest;
    multiply(WeightedNumbers<T>{reals(from + c), row + panel_.at(line) * in_weight, reals(to + c),
                                together, is_complex_, scale_});
  }
}

template <class T>
void PanelWeights<T>::ask_across(const void* weights, index_t j, index_t first,
                                 index_t lines) const {
  if (j >= line_.extent || panel_.stride != 1) return;
  constexpr index_t kLine = 64;
  const auto item = static_cast<index_t>((is_complex_ ? 2 : 1) * sizeof(T));
  const auto* const row =
      static_cast<const std::byte*>(weights) + (line_.at(j) + panel_.at(first)) * item;
  for (index_t i = 0; i < lines * item + kLine; i += kLine) __builtin_prefetch(row + i, 0, 3);
}

template class PanelWeights<float>;
template class PanelWeights<double>;

}  // namespace palimpsest
#endif
