// SPDX-License-Identifier: Apache-2.0
// The sums are compiled once per instruction set, SSE4 included: without vectors chirps would be
// faster.
#include "palimpsest/kernels/fft/row_transform.hpp"

#include <algorithm>

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/row_transform.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_TILES_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The rows of a group. Functions work on kWide vectors side by side, from number `at` on.
template <class T>
struct Group {
  const RowStep<T>& step;
  T* memory;      // of all rows
  index_t width;  // numbers in a row
  const int *from, *to;
  T *first, *sums, *differences;  // scratch: row 0, and sums and differences of pairs

  index_t half() const { return step.length / 2; }
  T* in(index_t j) const { return memory + from[j] * width; }
  T* out(index_t k) const { return memory + to[k] * width; }
};

// Computes sums and differences of pairs, and result 0.
template <class D, class T>
HWY_INLINE void add_pairs(D d, const Group<T>& g, index_t at) {
  const index_t q = g.step.length;
  const auto x = hn::LoadU(d, g.in(0) + at);
  hn::StoreU(x, d, g.first + at);
  auto total = x;
  for (index_t j = 1; j <= g.half(); ++j) {
    const auto a = hn::LoadU(d, g.in(j) + at);
    const auto b = 2 * j == q ? hn::Zero(d) : hn::LoadU(d, g.in(q - j) + at);
    const auto sum = hn::Add(a, b);
    total = hn::Add(total, sum);
    hn::StoreU(sum, d, g.sums + (j - 1) * g.width + at);
    hn::StoreU(2 * j == q ? b : hn::Sub(a, b), d, g.differences + (j - 1) * g.width + at);
  }
  hn::StoreU(total, d, g.out(0) + at);
}

// v[k] += sum over j of factors[k, j] x_j.
template <int kOutputs, int kWide, class D, class T, class V>
HWY_INLINE void add_products(D d, const Group<T>& g, const T* x, const T* factors, index_t at,
                             V (&v)[kOutputs][kWide]) {
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const index_t half = g.half();
  for (index_t j = 0; j < half; ++j, ++factors) {
    V row[kWide];
    for (int i = 0; i < kWide; ++i) row[i] = hn::LoadU(d, x + j * g.width + at + i * lanes);
    for (int k = 0; k < kOutputs; ++k) {
      const V factor = hn::Set(d, factors[k * half]);
      for (int i = 0; i < kWide; ++i) v[k][i] = hn::Add(v[k][i], hn::Mul(factor, row[i]));
    }
  }
}

// Computes results k .. k + kOutputs - 1 and their counterparts, length - k.
template <int kOutputs, int kWide, class D, class T>
HWY_INLINE void add_outputs(D d, const Group<T>& g, index_t k, index_t at) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const index_t factors = (k - 1) * g.half();
  V v[kOutputs][kWide];
  for (int i = 0; i < kWide; ++i) {
    const V x = hn::LoadU(d, g.first + at + i * lanes);
    for (int j = 0; j < kOutputs; ++j) v[j][i] = x;
  }
  add_products<kOutputs, kWide>(d, g, g.sums, g.step.cosines.data() + factors, at, v);
  for (int j = 0; j < kOutputs; ++j) {
    for (int i = 0; i < kWide; ++i) hn::StoreU(v[j][i], d, g.out(k + j) + at + i * lanes);
  }
  for (int j = 0; j < kOutputs; ++j) {
    for (int i = 0; i < kWide; ++i) v[j][i] = hn::Zero(d);
  }
  add_products<kOutputs, kWide>(d, g, g.differences, g.step.sines.data() + factors, at, v);
  for (int j = 0; j < kOutputs; ++j) {
    T *const one = g.out(k + j) + at, *const other = g.out(g.step.length - k - j) + at;
    if constexpr (hn::MaxLanes(D()) == 1) {  // of real and imaginary part, side by side
      static_assert(kWide == 2);
      const V re = hn::LoadU(d, one), im = hn::LoadU(d, one + 1);
      hn::StoreU(hn::Add(re, v[j][1]), d, one);
      hn::StoreU(hn::Sub(im, v[j][0]), d, one + 1);
      hn::StoreU(hn::Sub(re, v[j][1]), d, other);
      hn::StoreU(hn::Add(im, v[j][0]), d, other + 1);
    } else {
      for (int i = 0; i < kWide; ++i) {
        const V even = hn::LoadU(d, one + i * lanes), odd = hn::Reverse2(d, v[j][i]);
        const V more = hn::Add(even, odd), less = hn::Sub(even, odd);
        hn::StoreU(hn::OddEven(less, more), d, one + i * lanes);
        hn::StoreU(hn::OddEven(more, less), d, other + i * lanes);
      }
    }
  }
}

// Computes results 1 .. half and their counterparts, kOutputs at a time; the last ones may be
// computed twice.
template <int kOutputs, int kWide, class D, class T>
void add_all_outputs(D d, const Group<T>& g, index_t begin, index_t end) {
  const auto wide = kWide * static_cast<index_t>(hn::Lanes(d));
  for (index_t k = 1; k <= g.half(); k += kOutputs) {
    const index_t first = std::min(k, g.half() + 1 - kOutputs);
    for (index_t at = begin; at < end; at += wide) add_outputs<kOutputs, kWide>(d, g, first, at);
  }
}

// Numbers [begin, end) of the rows: a multiple of kWide vectors. Up to six results at a time, whose
// sums fill 12 of 16 registers if kWide is 2; as evenly as possible.
template <int kWide, class D, class T>
void transform(D d, const Group<T>& g, index_t begin, index_t end) {
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  for (index_t at = begin; at < end; at += lanes) add_pairs(d, g, at);
  if (g.half() == 0) return;
  const index_t parts = (g.half() + 5) / 6;
  switch ((g.half() + parts - 1) / parts) {
    case 1:
      return add_all_outputs<1, kWide>(d, g, begin, end);
    case 2:
      return add_all_outputs<2, kWide>(d, g, begin, end);
    case 3:
      return add_all_outputs<3, kWide>(d, g, begin, end);
    case 4:
      return add_all_outputs<4, kWide>(d, g, begin, end);
    case 5:
      return add_all_outputs<5, kWide>(d, g, begin, end);
    default:
      return add_all_outputs<6, kWide>(d, g, begin, end);
  }
}

template <class T>
void run_step(const RowStep<T>& step, T* memory, T* scratch, index_t width) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 16 / sizeof(T)> narrow;
  constexpr int kWide = 2;
  const auto wide = kWide * static_cast<index_t>(hn::Lanes(d));
  const index_t most = width / wide * wide, half = step.length / 2;
  const auto groups = static_cast<index_t>(step.from.size()) / step.length;
  for (index_t i = 0; i < groups; ++i) {
    const Group<T> group{step,
                         memory,
                         width,
                         step.from.data() + i * step.length,
                         step.to.data() + i * step.length,
                         scratch,
                         scratch + width,
                         scratch + (1 + half) * width};
    transform<kWide>(d, group, 0, most);
    if constexpr (hn::MaxLanes(d) > 1) transform<1>(narrow, group, most, width);
  }
}

}  // namespace

void single_step(const RowStep<float>& step, float* memory, float* scratch, index_t width) {
  run_step(step, memory, scratch, width);
}
void double_step(const RowStep<double>& step, double* memory, double* scratch, index_t width) {
  run_step(step, memory, scratch, width);
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/chirp_line.hpp"
#include "palimpsest/kernels/fft/line_twiddles.hpp"

namespace palimpsest {

HWY_EXPORT(single_step);
HWY_EXPORT(double_step);

namespace {

void run(const RowStep<float>& step, float* memory, float* scratch, index_t width) {
  HWY_DYNAMIC_DISPATCH(single_step)(step, memory, scratch, width);
}
void run(const RowStep<double>& step, double* memory, double* scratch, index_t width) {
  HWY_DYNAMIC_DISPATCH(double_step)(step, memory, scratch, width);
}

// FFTW has code for factors up to 11, for 13 in the innermost place alone, and for lines of up to
// 16. With more terms lines side by side cost as much as chirps. Single lines, which fill a vector
// by a quarter, cost two to four times as much as chirps.
constexpr index_t kLeastPrime = 13, kShortest = 17, kMostTerms = 112;

// n = p q without a common factor, p + q the least; p a multiple of the largest prime factor.
std::optional<std::pair<index_t, index_t>> factors_of(index_t n) {
  if (n < kShortest || n > kMostTerms * kMostTerms / 4) return std::nullopt;
  const index_t largest = largest_prime_factor(n);
  std::optional<std::pair<index_t, index_t>> best;
  for (index_t p = largest; p <= n && largest >= kLeastPrime; p += largest) {
    const index_t q = n / p;
    if (n % p != 0 || std::gcd(p, q) != 1 || p + q > kMostTerms) continue;
    if (!best || p + q < best->first + best->second) best = {p, q};
  }
  return best;
}

template <class T>
RowStep<T> step_of(index_t length) {
  RowStep<T> step;
  step.length = length;
  for (index_t k = 1; k <= length / 2; ++k) {
    for (index_t j = 1; j <= length / 2; ++j) {
      const std::complex<double> root = root_of_unity(j * k % length, length, false);
      step.cosines.push_back(static_cast<T>(root.real()));
      step.sines.push_back(static_cast<T>(root.imag()));
    }
  }
  return step;
}

}  // namespace

template <class T>
bool RowTransform<T>::is_better(index_t n) {
  return factors_of(n).has_value();
}

// Element j = (q j1 + p j2) mod n of x and k of y, k = k1 mod p and k = k2 mod q: exp(-2 pi i j k /
// n) is exp(-2 pi i j1 k1 / p) exp(-2 pi i j2 k2 / q). The first step goes from x to the rows of y,
// the second one works in place.
template <class T>
RowTransform<T>::RowTransform(index_t n, bool forward) : n_(n) {
  const auto [p, q] = *factors_of(n);
  const auto row_of = [&](index_t k1, index_t k2) {
    index_t k = k1;
    while (k % q != k2) k += p;
    return static_cast<int>(n + (forward ? k : (n - k) % n));
  };
  RowStep<T> first = step_of<T>(p), second = step_of<T>(q);
  for (index_t j2 = 0; j2 < q; ++j2) {
    for (index_t j1 = 0; j1 < p; ++j1) {
      first.from.push_back(static_cast<int>((q * j1 + p * j2) % n));
      first.to.push_back(row_of(j1, j2));
    }
  }
  for (index_t k1 = 0; k1 < p; ++k1) {
    for (index_t k2 = 0; k2 < q; ++k2) second.from.push_back(row_of(k1, k2));
  }
  second.to = second.from;
  scratch_rows_ = 1 + 2 * (std::max(p, q) / 2);
  steps_.push_back(std::move(first));
  if (q > 1) steps_.push_back(std::move(second));
}

template <class T>
std::shared_ptr<const RowTransform<T>> RowTransform<T>::find_or_make(index_t n, bool forward) {
  struct Made {
    Mutex mutex;
    std::map<std::pair<index_t, bool>, std::shared_ptr<const RowTransform>> all;
  };
  Made& made = immortal([] { return Made(); });
  const std::lock_guard lock(made.mutex);
  auto& transform = made.all[{n, forward}];
  if (!transform) transform = std::make_shared<RowTransform>(n, forward);
  return transform;
}

template <class T>
void RowTransform<T>::execute(std::complex<T>* rows, index_t lines) const {
  auto* const memory = reinterpret_cast<T*>(rows);
  for (const RowStep<T>& step : steps_) {
    run(step, memory, memory + 2 * n_ * 2 * lines, 2 * lines);
  }
}

template class RowTransform<float>;
template class RowTransform<double>;

}  // namespace palimpsest
#endif
