// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of a prime number of rows. Compiled once per instruction set.
#if defined(PALIMPSEST_SPLIT_PRIMES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_SPLIT_PRIMES_INL
#undef PALIMPSEST_SPLIT_PRIMES_INL
#else
#define PALIMPSEST_SPLIT_PRIMES_INL
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "palimpsest/kernels/fft/prime_products.hpp"
#include "palimpsest/kernels/fft/split_lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE Numbers<T> plus(bool is_positive, Numbers<T> a, Numbers<T> b) {
  return is_positive ? a + b : a - b;
}

// A fold, before the products or after them.
template <class T>
HWY_INLINE void fold(const typename PrimeProducts<T>::Fold& of, T* rows, bool is_before) {
  const index_t apart = of.count * kRow<T>;
  T* row = rows + of.at * kRow<T>;
  for (T* const end = row + apart; row < end; row += kRow<T>) {
    const Numbers<T> a = load_scratch(row), b = load_scratch(row + apart);
    if (of.parts == 2) {
      store_scratch<T>(a + b, row);
      store_scratch<T>(a - b, row + apart);
      continue;
    }
    const bool sign = of.is_positive;
    const Numbers<T> c = load_scratch(row + 2 * apart);
    store_scratch<T>(is_before ? a - c : a + c, row);
    store_scratch<T>(plus<T>(is_before != sign, b, c), row + apart);
    store_scratch<T>(is_before ? plus<T>(sign, a, b) + c : plus<T>(!sign, c - a, b),
                     row + 2 * apart);
  }
}

// Rows k .. k + kOutputs - 1 of a product.
template <int kOutputs, class T>
HWY_INLINE void multiply(const typename PrimeProducts<T>::Product& of, index_t k, const T* first,
                         const T* from, T* to) {
  const Lanes<T> d;
  const index_t n = of.n;
  const T* row = from + of.at * kRow<T>;
  const T* factors = of.factors.data() + k * n;
  Numbers<T> v[kOutputs];
  for (int i = 0; i < kOutputs; ++i) {
    v[i] = of.adds_first ? load_scratch(first) : Numbers<T>{hn::Zero(d), hn::Zero(d)};
  }
  for (index_t j = 0; j < n; ++j, ++factors, row += kRow<T>) {
    const Numbers<T> x = load_scratch(row);
    for (int i = 0; i < kOutputs; ++i) v[i] = v[i] + hn::Set(d, factors[i * n]) * x;
  }
  for (int i = 0; i < kOutputs; ++i) store_scratch<T>(v[i], to + (of.at + k + i) * kRow<T>);
}
// All rows, some at a time: up to six, whose sums fill 12 of 16 registers, as evenly as possible;
// the last ones may be computed twice.
template <int kOutputs, class T>
HWY_INLINE void multiply_all(const typename PrimeProducts<T>::Product& of, const T* first,
                             const T* from, T* to) {
  for (index_t k = 0; k < of.n; k += kOutputs) {
    multiply<kOutputs, T>(of, std::min<index_t>(k, of.n - kOutputs), first, from, to);
  }
}
template <class T>
HWY_NOINLINE void multiply_all(const typename PrimeProducts<T>::Product& of, const T* first,
                               const T* from, T* to) {
  const index_t parts = (of.n + 5) / 6;
  switch ((of.n + parts - 1) / parts) {
    case 1:
      return multiply_all<1, T>(of, first, from, to);
    case 2:
      return multiply_all<2, T>(of, first, from, to);
    case 3:
      return multiply_all<3, T>(of, first, from, to);
    case 4:
      return multiply_all<4, T>(of, first, from, to);
    case 5:
      return multiply_all<5, T>(of, first, from, to);
    default:
      return multiply_all<6, T>(of, first, from, to);
  }
}

// Transforms load(0) .. load(p - 1); calls store(k, result k). Scratch of 2 p - 1 rows.
template <class T, class Load, class Store>
HWY_INLINE void run_prime(const PrimeProducts<T>& prime, T* scratch, const Load& load,
                          const Store& store) {
  const auto half = static_cast<index_t>(prime.pairs.size());
  const auto p = static_cast<int>(2 * half + 1);
  T *const from = scratch + kRow<T>, *const to = from + 2 * half * kRow<T>;
  Numbers<T> total = load(0);
  store_scratch<T>(total, scratch);
  for (index_t j = 0; j < half; ++j) {
    const int at = prime.pairs[static_cast<std::size_t>(j)];
    const Numbers<T> a = load(at), b = load(p - at), sum = a + b;
    total = total + sum;
    store_scratch<T>(sum, from + j * kRow<T>);
    store_scratch<T>(a - b, from + (half + j) * kRow<T>);
  }
  for (const auto& of : prime.before) fold<T>(of, from, true);
  for (const auto& of : prime.products) multiply_all<T>(of, scratch, from, to);
  for (const auto& of : prime.after) fold<T>(of, to, false);
  store(0, total);
  for (index_t k = 0; k < half; ++k) {
    const int at = prime.pairs[static_cast<std::size_t>(k)];
    const Numbers<T> even = load_scratch(to + k * kRow<T>);
    const Numbers<T> odd = load_scratch(to + (half + k) * kRow<T>);
    store(at, minus_i(even, odd));
    store(p - at, plus_i(even, odd));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_SPLIT_PRIMES_INL
