// SPDX-License-Identifier: Apache-2.0
// Products with weights, compiled once per instruction set.
//
// Loaded real weights are pairs of lines, which look like complex numbers: element j of both lines
// side by side. So panel_exchange.hpp transposes them, and a vector of such pairs has each weight
// where a complex number of its line has its real part.
#include "palimpsest/kernels/fft/panel_weights.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/fft/panel_exchange.hpp"

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

// w[2 j] is the weight of number j.
template <class T>
HWY_INLINE void times_every_second(const T* from, const T* w, T scale, T* to, index_t n) {
  index_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  for (; i + lanes <= 2 * n; i += lanes) {  // reads a number behind the weights of an odd line
    const auto weight = hn::Mul(hn::DupEven(hn::LoadU(d, w + i)), factor);
    hn::StoreU(hn::Mul(hn::LoadU(d, from + i), weight), d, to + i);
  }
#endif
  for (; i < 2 * n; i += 2) {
    const T weight = w[i] * scale;
    to[i] = from[i] * weight;
    to[i + 1] = from[i + 1] * weight;
  }
}

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
  } else if (p.step == 2) {
    times_every_second(p.from, p.weights, p.scale, p.to, p.n);
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
std::size_t PanelWeights<T>::bytes_per_line() const {
  return static_cast<std::size_t>(distance()) * (is_complex_ ? 2 : 1) * sizeof(T);
}

// Do the weights of neighbouring lines lie side by side?
template <class T>
bool PanelWeights<T>::are_neighbours(index_t first, index_t lines) const {
  return panel_.stride == 1 && panel_.at(first + lines - 1) - panel_.at(first) == lines - 1;
}

template <class T>
bool PanelWeights<T>::transposes(index_t first, index_t lines) const {
  return std::is_same_v<T, float> && lines > 1 && are_neighbours(first, lines) &&
         (is_complex_ || line_.stride % 2 == 0) && panel_exchanges().gather != nullptr;
}

template <class T>
template <class W>
void PanelWeights<T>::transpose(const W* weights, index_t lines, std::byte* memory) const {
  if constexpr (std::is_same_v<T, float>) {
    using Number = std::complex<float>;
    constexpr index_t kInNumber = sizeof(Number) / sizeof(W);
    const index_t n = line_.extent, split = n - line_.shift;
    for (const auto& [begin, end] : {std::pair{index_t{0}, split}, std::pair{split, n}}) {
      if (begin == end) continue;
      panel_exchanges().gather({reinterpret_cast<const Number*>(weights + line_.at(begin)),
                                reinterpret_cast<Number*>(memory) + begin, line_.stride / kInNumber,
                                distance(), lines / kInNumber, end - begin});
    }
  }
}

template <class T>
template <class W>
void PanelWeights<T>::load_as(const W* weights, index_t first, index_t lines,
                              std::byte* memory) const {
  index_t c = 0;
  if (transposes(first, lines)) {
    c = is_complex_ ? lines : lines / 2 * 2;
    transpose(weights + panel_.at(first), c, memory);
  }
  for (; c < lines; ++c) {
    W* const line = loaded<W>(memory, c);
    const W* const from = weights + panel_.at(first + c);
    for (index_t j = 0; j < line_.extent; ++j) {
      line[j * (is_complex_ ? 1 : 2)] = from[line_.at(j)];
    }
  }
}

template <class T>
void PanelWeights<T>::load(const void* weights, index_t first, index_t lines,
                           std::byte* memory) const {
  if (is_complex_) {
    load_as(static_cast<const std::complex<T>*>(weights), first, lines, memory);
  } else {
    load_as(static_cast<const T*>(weights), first, lines, memory);
  }
}

template <class T>
void PanelWeights<T>::apply(std::byte* memory, index_t line, std::complex<T>* z) const {
  const T* const weights =
      is_complex_ ? reals(loaded<std::complex<T>>(memory, line)) : loaded<T>(memory, line);
  multiply(WeightedNumbers<T>{reals(z), weights, reals(z), line_.extent, 2, is_complex_, scale_});
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
                                together, in_weight, is_complex_, scale_});
  }
}

template class PanelWeights<float>;
template class PanelWeights<double>;

}  // namespace palimpsest
#endif
