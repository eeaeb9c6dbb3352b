// SPDX-License-Identifier: Apache-2.0
// Sums and extrema of runs, read in order of memory. A run begins before the last additions of the
// previous one are done. Compiled once per instruction set.
//
// As in the plain loop, a run has 16 lanes, which are added pairwise in the end. A lane of a
// complex sum is a pair of neighbouring numbers.
#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/reduce/reduce_runs.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

namespace hn = hwy::HWY_NAMESPACE;

template <class R>
using Tag = hn::ScalableTag<R>;
template <class R>
using VecOf = hn::Vec<Tag<R>>;

// The terms of numbers [i, i + N) of a run: kParts numbers per element, from kRead numbers of each
// operand.
template <class R, int kPartsOf>
struct Plain {
  static constexpr int kParts = kPartsOf, kOperands = 1, kRead = 1;
  static HWY_INLINE VecOf<R> at(const R* const* x, index_t i) {
    return hn::LoadU(Tag<R>(), x[0] + i);
  }
};
template <class R>
struct Square {
  static constexpr int kParts = 1, kOperands = 1, kRead = 1;
  static HWY_INLINE VecOf<R> at(const R* const* x, index_t i) {
    const VecOf<R> v = hn::LoadU(Tag<R>(), x[0] + i);
    return hn::Mul(v, v);
  }
};
template <class R>
struct Product {
  static constexpr int kParts = 1, kOperands = 2, kRead = 1;
  static HWY_INLINE VecOf<R> at(const R* const* x, index_t i) {
    const Tag<R> d;
    return hn::Mul(hn::LoadU(d, x[0] + i), hn::LoadU(d, x[1] + i));
  }
};
// |z|^2, z complex.
template <class R>
struct Magnitude2 {
  static constexpr int kParts = 1, kOperands = 1, kRead = 2;
  static HWY_INLINE VecOf<R> at(const R* const* x, index_t i) {
    const Tag<R> d;
    const VecOf<R> low = hn::LoadU(d, x[0] + 2 * i);
    const VecOf<R> high = hn::LoadU(d, x[0] + 2 * i + static_cast<index_t>(hn::MaxLanes(d)));
    const VecOf<R> re = hn::ConcatEven(d, high, low), im = hn::ConcatOdd(d, high, low);
    return hn::Add(hn::Mul(re, re), hn::Mul(im, im));
  }
};
// a b, conj(a) b, or both conjugated.
template <class R, bool kConjA, bool kConjB>
struct ComplexProduct {
  static constexpr int kParts = 2, kOperands = 2, kRead = 1;
  static HWY_INLINE VecOf<R> at(const R* const* x, index_t i) {
    const Tag<R> d;
    const VecOf<R> a = hn::LoadU(d, x[0] + i), b = hn::LoadU(d, x[1] + i);
    const VecOf<R> of_re = hn::Mul(hn::DupEven(a), b);
    const VecOf<R> of_im = hn::Mul(hn::DupOdd(a), hn::Reverse2(d, b));
    const VecOf<R> sum = hn::Add(of_re, of_im), difference = hn::Sub(of_re, of_im);
    if constexpr (kConjA && kConjB) return hn::OddEven(hn::Neg(sum), difference);
    if constexpr (kConjA) return hn::OddEven(difference, sum);
    return hn::OddEven(sum, difference);
  }
};

// Combines a lane with the next number, as the plain loop does.
struct Sum {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Add(a, b);
  }
  static float of(float a, float b) { return a + b; }
  static double of(double a, double b) { return a + b; }
};
// The first number if it is beyond the second, or NaN.
template <bool kMax>
struct Extremum {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    const auto beyond = kMax ? hn::Gt(a, b) : hn::Lt(a, b);
    return hn::IfThenElse(hn::Or(beyond, hn::IsNaN(a)), a, b);
  }
  template <class R>
  static R of_numbers(R a, R b) {
    return (kMax ? a > b : a < b) || a != a ? a : b;
  }
  static float of(float a, float b) { return of_numbers(a, b); }
  static double of(double a, double b) { return of_numbers(a, b); }
};

// Prefetches: short pauses after each run mislead hardware prefetchers.
constexpr index_t kAheadBytes = 1024, kLine = 64;
template <class F, class R>
HWY_INLINE void ask_ahead(const R* const* x, index_t i, index_t numbers) {
  for (int k = 0; k < F::kOperands; ++k) {
    const auto* at = reinterpret_cast<const std::byte*>(x[k] + F::kRead * i) + kAheadBytes;
    const index_t bytes = F::kRead * numbers * index_t{sizeof(R)};
    for (index_t b = 0; b < bytes; b += kLine) __builtin_prefetch(at + b, 0, 2);
  }
}

// The sum of all lanes, kParts numbers each: the upper half is added to the lower one, and so on.
template <class Combine, int kParts, class D, class R = hn::TFromD<D>>
HWY_INLINE void add_lanes(D d, hn::Vec<D> v, R* sum) {
  constexpr std::size_t kN = hn::MaxLanes(D());
  if constexpr (kN * sizeof(R) > 16) {
    const hn::Half<D> half;
    add_lanes<Combine, kParts>(half, Combine::of(hn::LowerHalf(half, v), hn::UpperHalf(half, v)),
                               sum);
  } else {
    if constexpr (kN == 4) v = Combine::of(v, hn::Shuffle1032(v));
    if constexpr (kN == 4 && kParts == 1) v = Combine::of(v, hn::Shuffle2301(v));
    if constexpr (kN == 2 && kParts == 1) v = Combine::of(v, hn::Shuffle01(v));
    hn::Store(v, d, sum);
  }
}

template <class R, class F, class Combine, bool kFar>
void runs_of(const std::byte* const* operands, int n, std::byte* result) {
  constexpr auto kN = static_cast<index_t>(hn::MaxLanes(Tag<R>()));
  constexpr index_t kLanes = 16 * F::kParts, kRun = kLeafElements * F::kParts;
  constexpr auto kVectors = static_cast<int>(kLanes / kN);
  const R* const x[2] = {reinterpret_cast<const R*>(operands[0]),
                         reinterpret_cast<const R*>(operands[1])};
  HWY_ALIGN R results[kMostRuns][16 / sizeof(R)];
  for (int run = 0; run < n; ++run) {
    VecOf<R> sums[kVectors];
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) sums[v] =
        F::at(x, run * kRun + v * kN);
    if constexpr (kFar) ask_ahead<F>(x, run * kRun, kLanes);
    _Pragma("GCC unroll 5") for (index_t i = kLanes; i < kRun; i += kLanes) {
      if constexpr (kFar) ask_ahead<F>(x, run * kRun + i, kLanes);
      _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {
        sums[v] = Combine::of(sums[v], F::at(x, run * kRun + i + v * kN));
      }
    }
    _Pragma("GCC unroll 5") for (int half = kVectors / 2; half > 0; half /= 2) {
      _Pragma("GCC unroll 16") for (int v = 0; v < half; ++v) {
        sums[v] = Combine::of(sums[v], sums[v + half]);
      }
    }
    add_lanes<Combine, F::kParts>(Tag<R>(), sums[0], results[run]);
  }
  for (int width = 1; width < n; width *= 2) {
    for (int run = 0; run < n; run += 2 * width) {
      for (int part = 0; part < F::kParts; ++part) {
        // The later one first, as in the cascade.
        results[run][part] = Combine::of(results[run + width][part], results[run][part]);
      }
    }
  }
  for (int part = 0; part < F::kParts; ++part) {
    reinterpret_cast<R*>(result)[part] = results[0][part];
  }
}

// The extremum of two vectors. The instruction of x86 processors gives the result of `Extremum`,
// unless the first vector holds NaN, which is lost. Runs with NaN are rare and are repeated.
template <bool kMax, bool kQuick, class V>
HWY_INLINE V extremum_of_two(V a, V b) {
#if HWY_ARCH_X86
  if constexpr (kQuick) return kMax ? hn::Max(a, b) : hn::Min(a, b);
#endif
  return Extremum<kMax>::of(a, b);
}

// Like the plain loop: 16 lanes, the first of which may have one number more.
template <class R, bool kMax, bool kQuick>
HWY_INLINE bool put_extremum(const R* x, index_t n, R* result) {
  const Tag<R> d;
  constexpr auto kN = static_cast<index_t>(hn::MaxLanes(Tag<R>()));
  constexpr index_t kLanes = 16;
  constexpr auto kVectors = static_cast<int>(kLanes / kN);
  VecOf<R> best[kVectors];
  // A NaN term makes the sum NaN. So do infinities of both signs: they cost an unnecessary second
  // run.
  VecOf<R> sum = hn::Zero(d);
  _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::LoadU(d, x + v * kN);
    if constexpr (kQuick) sum = hn::Add(sum, best[v]);
  }
  index_t i = kLanes;
  _Pragma("GCC unroll 5") for (; i + kLanes <= n; i += kLanes) {
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {
      const VecOf<R> next = hn::LoadU(d, x + i + v * kN);
      if constexpr (kQuick) sum = hn::Add(sum, next);
      best[v] = extremum_of_two<kMax, kQuick>(best[v], next);
    }
  }
  if (i < n) {
    HWY_ALIGN R lanes[kLanes];
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v)
        hn::Store(best[v], d, lanes + v * kN);
    for (index_t k = 0; i + k < n; ++k) lanes[k] = Extremum<kMax>::of(lanes[k], x[i + k]);
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {
      best[v] = hn::Load(d, lanes + v * kN);
      if constexpr (kQuick) sum = hn::Add(sum, best[v]);
    }
  }
  _Pragma("GCC unroll 5") for (int half = kVectors / 2; half > 0; half /= 2) {
    _Pragma("GCC unroll 16") for (int v = 0; v < half; ++v) best[v] =
        extremum_of_two<kMax, kQuick>(best[v], best[v + half]);
  }
  HWY_ALIGN R last[16 / sizeof(R)];
  add_lanes<Extremum<kMax>, 1>(d, best[0], last);
  *result = last[0];
  return !kQuick || hn::AllTrue(d, hn::Eq(sum, sum));
}
template <class R, bool kMax>
HWY_INLINE R extremum_of(const R* x, index_t n) {
  R best = x[0];
  if (n < 16) {
    for (index_t i = 1; i < n; ++i) best = Extremum<kMax>::of(best, x[i]);
    return best;
  }
#if HWY_ARCH_X86
  if (put_extremum<R, kMax, true>(x, n, &best)) return best;
#endif
  put_extremum<R, kMax, false>(x, n, &best);
  return best;
}
// The index of the first of n numbers that equals `wanted` or is NaN; n if there is none.
template <class R>
index_t find(const std::byte* numbers, index_t n, const std::byte* wanted) {
  const Tag<R> d;
  constexpr auto kN = static_cast<index_t>(hn::MaxLanes(Tag<R>()));
  const auto* const x = reinterpret_cast<const R*>(numbers);
  const R one = *reinterpret_cast<const R*>(wanted);
  const VecOf<R> all = hn::Set(d, one);
  index_t i = 0;
  for (; i + kN <= n; i += kN) {
    const VecOf<R> here = hn::LoadU(d, x + i);
    const auto found = hn::Or(hn::Eq(here, all), hn::IsNaN(here));
    const auto first = hn::FindFirstTrue(d, found);
    if (first >= 0) return i + static_cast<index_t>(first);
  }
  while (i < n && x[i] != one && x[i] == x[i]) ++i;
  return i;
}
template <class R, bool kMax>
void horizontal_of_extremum(const std::byte* const* x, index_t n, std::byte* result) {
  *reinterpret_cast<R*>(result) = extremum_of<R, kMax>(reinterpret_cast<const R*>(x[0]), n);
}
template <class R, bool kMax>
void runs_of_extremum(const std::byte* const* operands, int n, std::byte* result, bool far) {
  const auto* const x = reinterpret_cast<const R*>(operands[0]);
  R results[kMostRuns];
  for (int run = 0; run < n; ++run) {
    const R* const from = x + run * kLeafElements;
    if (far) ask_ahead<Plain<R, 1>>(&from, 0, kLeafElements);
    results[run] = extremum_of<R, kMax>(from, kLeafElements);
  }
  for (int width = 1; width < n; width *= 2) {
    for (int run = 0; run < n; run += 2 * width) {
      results[run] = Extremum<kMax>::of(results[run + width], results[run]);
    }
  }
  *reinterpret_cast<R*>(result) = results[0];
}

template <class R, class F>
void runs(const std::byte* const* operands, int n, std::byte* result, bool far) {
  far ? runs_of<R, F, Sum, true>(operands, n, result)
      : runs_of<R, F, Sum, false>(operands, n, result);
}

// Adds kRows rows in order, one cache line of each at a time.
template <class R, int kRows, Rows how>
void rows_at_once(const R* const* rows, R* sums, index_t n) {
  const R* x[kRows];
  _Pragma("GCC unroll 16") for (int r = 0; r < kRows; ++r) x[r] = rows[r];
  const Tag<R> d;
  constexpr auto kN = static_cast<index_t>(hn::MaxLanes(Tag<R>()));
  constexpr index_t kStep = std::max<index_t>(kLine / index_t{sizeof(R)}, kN);
  constexpr auto kVectors = static_cast<int>(kStep / kN);
  // The more rows, the shorter the prefetch distance in each.
  constexpr index_t kAhead = (kRows > kRowsAtOnce ? 512 : 1024) / index_t{sizeof(R)};
  constexpr int kFirst = how == Rows::onto ? 0 : 1;
  index_t i = 0;
  const auto single = [&] {
    R sum = how == Rows::onto ? sums[i] : x[0][i];
    for (int r = kFirst; r < kRows; ++r) sum = sum + x[r][i];
    sums[i] = sum;
  };
  if constexpr (how == Rows::streamed) {
    for (; i < n && reinterpret_cast<std::uintptr_t>(sums + i) % kLine != 0; ++i) single();
  }
  for (; i + kStep <= n; i += kStep) {
    VecOf<R> sum[kVectors];
    const R* const from = how == Rows::onto ? sums : x[0];
    _Pragma("GCC unroll 4") for (int v = 0; v < kVectors; ++v) sum[v] =
        hn::LoadU(d, from + i + v * kN);
    if constexpr (how != Rows::onto) __builtin_prefetch(x[0] + i + kAhead, 0, 2);
    _Pragma("GCC unroll 16") for (int r = kFirst; r < kRows; ++r) {
      asm volatile("" ::: "memory");  // row by row: lines of many rows may not fit the cache
      __builtin_prefetch(x[r] + i + kAhead, 0, 2);
      _Pragma("GCC unroll 4") for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::Add(sum[v], hn::LoadU(d, x[r] + i + v * kN));
      }
    }
    _Pragma("GCC unroll 4") for (int v = 0; v < kVectors; ++v) {
      if constexpr (how == Rows::streamed) {
        hn::Stream(sum[v], d, sums + i + v * kN);
      } else {
        hn::StoreU(sum[v], d, sums + i + v * kN);
      }
    }
  }
  for (; i < n; ++i) single();
  if constexpr (how == Rows::streamed) hwy::FlushStream();
}

// The same bits as sums of the plain loop, for rows in order. A row of complex numbers is treated
// as twice as many real ones.
template <class R, int kParts>
void rows_of_sum(const std::byte* const* rows, int count, std::byte* accumulators, index_t n,
                 Rows how) {
  auto* const sums = reinterpret_cast<R*>(accumulators);
  const R* x[kLeafRows];
  for (int r = 0; r < count; ++r) x[r] = reinterpret_cast<const R*>(rows[r]);
  n *= kParts;
  int done = 0;
  const auto add = [&]<int kRows>(std::integral_constant<int, kRows>) {
    if (count - done < kRows) return;
    if (done > 0 || how == Rows::onto) {
      rows_at_once<R, kRows, Rows::onto>(x + done, sums, n);
    } else if (how == Rows::streamed && count == kRows) {
      rows_at_once<R, kRows, Rows::streamed>(x, sums, n);
    } else {
      rows_at_once<R, kRows, Rows::first>(x, sums, n);
    }
    done += kRows;
  };
  add(std::integral_constant<int, 16>());
  add(std::integral_constant<int, 8>());
  add(std::integral_constant<int, 4>());
  add(std::integral_constant<int, 2>());
  add(std::integral_constant<int, 1>());
}
static_assert(kLeafRows <= 16);

// A factor of a row: x p + (x with its pairs exchanged) q. For real numbers q is unused.
template <class R, int kParts>
struct Factor {
  VecOf<R> p, q;
};
template <class R, int kParts, bool kConjA, bool kNumberFirst>
HWY_INLINE Factor<R, kParts> factor_of(const R* number) {
  const Tag<R> d;
  if constexpr (kParts == 1) {
    return {hn::Set(d, number[0]), hn::Zero(d)};
  } else {
    const VecOf<R> re = hn::Set(d, number[0]), im = hn::Set(d, number[1]);
    const VecOf<R> minus_im = hn::Neg(im), minus_re = hn::Neg(re);
    if constexpr (!kConjA) return {re, hn::OddEven(im, minus_im)};
    if constexpr (kNumberFirst) return {re, hn::OddEven(minus_im, im)};
    return {hn::OddEven(minus_re, re), im};
  }
}
template <class R, int kParts>
HWY_INLINE VecOf<R> times(VecOf<R> x, const Factor<R, kParts>& f) {
  if constexpr (kParts == 1) return hn::Mul(f.p, x);
  return hn::Add(hn::Mul(f.p, x), hn::Mul(f.q, hn::Reverse2(Tag<R>(), x)));
}

// Adds kRows rows, each times a number, in order, one cache line of each at a time.
template <class R, int kParts, bool kConjA, bool kNumberFirst, int kRows>
void products_at_once(const std::byte* const* x, R* sums, index_t n, bool first) {
  const Tag<R> d;
  constexpr auto kN = static_cast<index_t>(hn::MaxLanes(Tag<R>()));
  constexpr index_t kStep = std::max<index_t>(kLine / index_t{sizeof(R)}, kN);
  constexpr auto kVectors = static_cast<int>(kStep / kN);
  constexpr index_t kAhead = 1024 / index_t{sizeof(R)};
  const R* row[kRows];
  Factor<R, kParts> factor[kRows];
  _Pragma("GCC unroll 8") for (int r = 0; r < kRows; ++r) {
    row[r] = reinterpret_cast<const R*>(x[2 * r + (kNumberFirst ? 1 : 0)]);
    factor[r] = factor_of<R, kParts, kConjA, kNumberFirst>(
        reinterpret_cast<const R*>(x[2 * r + (kNumberFirst ? 0 : 1)]));
  }
  const auto add = [&](index_t i, auto vectors) HWY_ATTR {
    constexpr int kMany = decltype(vectors)::value;
    VecOf<R> sum[kMany];
    if (!first) {
      _Pragma("GCC unroll 4") for (int v = 0; v < kMany; ++v) sum[v] =
          hn::LoadU(d, sums + i + v * kN);
    }
    _Pragma("GCC unroll 8") for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(row[r] + i + kAhead, 0, 2);
      _Pragma("GCC unroll 4") for (int v = 0; v < kMany; ++v) {
        const VecOf<R> term = times<R, kParts>(hn::LoadU(d, row[r] + i + v * kN), factor[r]);
        sum[v] = r == 0 && first ? term : hn::Add(sum[v], term);
      }
    }
    _Pragma("GCC unroll 4") for (int v = 0; v < kMany; ++v) {
      hn::StoreU(sum[v], d, sums + i + v * kN);
    }
  };
  index_t i = 0;
  for (; i + kStep <= n; i += kStep) add(i, std::integral_constant<int, kVectors>());
  for (; i + kN <= n; i += kN) add(i, std::integral_constant<int, 1>());
  if (i == n) return;
  // Copies the rest to whole vectors.
  HWY_ALIGN R copy[kN];
  const auto rest = static_cast<std::size_t>(n - i) * sizeof(R);
  const auto loaded = [&](const R* from) HWY_ATTR {
    std::memcpy(copy, from, rest);
    return hn::Load(d, copy);
  };
  std::memset(copy, 0, sizeof(copy));
  VecOf<R> sum = first ? hn::Zero(d) : loaded(sums + i);
  for (int r = 0; r < kRows; ++r) {
    const VecOf<R> term = times<R, kParts>(loaded(row[r] + i), factor[r]);
    sum = r == 0 && first ? term : hn::Add(sum, term);
  }
  hn::Store(sum, d, copy);
  std::memcpy(sums + i, copy, rest);
}

template <class R, int kParts, bool kConjA, bool kNumberFirst>
void rows_of_product(const std::byte* const* x, int count, std::byte* accumulators, index_t n,
                     Rows how) {
  auto* const sums = reinterpret_cast<R*>(accumulators);
  bool first = how != Rows::onto;
  const auto add = [&]<int kRows>(std::integral_constant<int, kRows>) {
    for (; count >= kRows; count -= kRows, x += 2 * kRows, first = false) {
      products_at_once<R, kParts, kConjA, kNumberFirst, kRows>(x, sums, n * kParts, first);
    }
  };
  add(std::integral_constant<int, 4>());
  add(std::integral_constant<int, 1>());
}

template <class R, int kParts>
RowsOfSum of_rows_of_product(bool conj_a, bool number_first) {
  if (kParts == 1 || !conj_a) {
    return number_first ? rows_of_product<R, kParts, false, true>
                        : rows_of_product<R, kParts, false, false>;
  }
  return number_first ? rows_of_product<R, kParts, true, true>
                      : rows_of_product<R, kParts, true, false>;
}

template <class R>
Runs of_product(bool complex, bool conj_a, bool conj_b) {
  if (!complex) return runs<R, Product<R>>;
  if (conj_a && conj_b) return runs<R, ComplexProduct<R, true, true>>;
  if (conj_a) return runs<R, ComplexProduct<R, true, false>>;
  return runs<R, ComplexProduct<R, false, false>>;
}

// The plain loops would not round each product of complex numbers: compilers contract the products
// with their sums and differences.

// Adds kRows rows of products in order, one cache line of each at a time.
template <class R, class F, int kRows>
void complex_rows_at_once(const std::byte* const* x, R* sums, index_t n, bool first) {
  const Tag<R> d;
  constexpr auto kN = static_cast<index_t>(hn::MaxLanes(Tag<R>()));
  constexpr index_t kAhead = 1024 / index_t{sizeof(R)};
  const R* row[kRows][2];
  _Pragma("GCC unroll 8") for (int r = 0; r < kRows; ++r) {
    for (int k = 0; k < 2; ++k) row[r][k] = reinterpret_cast<const R*>(x[2 * r + k]);
  }
  index_t i = 0;
  for (; i + kN <= n; i += kN) {
    VecOf<R> sum = first ? F::at(row[0], i) : hn::Add(hn::LoadU(d, sums + i), F::at(row[0], i));
    _Pragma("GCC unroll 8") for (int r = 1; r < kRows; ++r) {
      __builtin_prefetch(row[r][0] + i + kAhead, 0, 2);
      __builtin_prefetch(row[r][1] + i + kAhead, 0, 2);
      sum = hn::Add(sum, F::at(row[r], i));
    }
    hn::StoreU(sum, d, sums + i);
  }
  if (i == n) return;
  // Copies the rest to whole vectors.
  HWY_ALIGN R copy[3][kN] = {};
  const R* const copies[2] = {copy[0], copy[1]};
  const auto rest = static_cast<std::size_t>(n - i) * sizeof(R);
  std::memcpy(copy[2], sums + i, first ? 0 : rest);
  for (int r = 0; r < kRows; ++r) {
    for (int k = 0; k < 2; ++k) std::memcpy(copy[k], row[r][k] + i, rest);
    const VecOf<R> term = F::at(copies, 0);
    hn::Store(r == 0 && first ? term : hn::Add(hn::Load(d, copy[2]), term), d, copy[2]);
  }
  std::memcpy(sums + i, copy[2], rest);
}
template <class R, class F>
void complex_rows(const std::byte* const* x, int count, std::byte* accumulators, index_t n,
                  Rows how) {
  auto* const sums = reinterpret_cast<R*>(accumulators);
  bool first = how != Rows::onto;
  for (; count >= kRowsAtOnce; count -= kRowsAtOnce, x += 2 * kRowsAtOnce, first = false) {
    complex_rows_at_once<R, F, kRowsAtOnce>(x, sums, 2 * n, first);
  }
  for (; count > 0; --count, x += 2, first = false) {
    complex_rows_at_once<R, F, 1>(x, sums, 2 * n, first);
  }
}

// The sum of n products; with 16 or more, 16 lanes are added first.
template <class R, class F>
void complex_horizontal(const std::byte* const* operands, index_t n, std::byte* result) {
  const Tag<R> d;
  constexpr auto kN = static_cast<index_t>(hn::MaxLanes(Tag<R>()));
  constexpr index_t kLanes = 16 * 2;
  constexpr auto kVectors = static_cast<int>(kLanes / kN);
  const R* const x[2] = {reinterpret_cast<const R*>(operands[0]),
                         reinterpret_cast<const R*>(operands[1])};
  HWY_ALIGN R copy[2][kLanes] = {}, terms[kLanes], last[16 / sizeof(R)];
  const R* const copies[2] = {copy[0], copy[1]};
  terms[0] = terms[1] = 0;
  VecOf<R> sums[kVectors];
  const index_t whole = 2 * n / kLanes * kLanes, rest = 2 * n - whole;
  for (index_t i = 0; i < whole; i += kLanes) {
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {
      const VecOf<R> term = F::at(x, i + v * kN);
      sums[v] = i == 0 ? term : hn::Add(sums[v], term);
    }
  }
  if (rest > 0) {
    for (int k = 0; k < 2; ++k) {
      std::memcpy(copy[k], x[k] + whole, static_cast<std::size_t>(rest) * sizeof(R));
    }
    for (index_t i = 0; i < kLanes; i += kN) hn::Store(F::at(copies, i), d, terms + i);
  }
  auto* const out = reinterpret_cast<R*>(result);
  if (whole == 0) {
    R re = terms[0], im = terms[1];
    for (index_t i = 2; i < rest; i += 2) re = re + terms[i], im = im + terms[i + 1];
    out[0] = re;
    out[1] = im;
    return;
  }
  if (rest > 0) {
    HWY_ALIGN R lanes[kLanes];
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v)
        hn::Store(sums[v], d, lanes + v * kN);
    for (index_t i = 0; i < rest; ++i) lanes[i] = lanes[i] + terms[i];
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) sums[v] =
        hn::Load(d, lanes + v * kN);
  }
  _Pragma("GCC unroll 5") for (int half = kVectors / 2; half > 0; half /= 2) {
    _Pragma("GCC unroll 16") for (int v = 0; v < half; ++v) sums[v] =
        hn::Add(sums[v], sums[v + half]);
  }
  add_lanes<Sum, 2>(d, sums[0], last);
  out[0] = last[0];
  out[1] = last[1];
}

template <class R>
ComplexProductLoops complex_product_loops_of(bool conj_a, bool conj_b) {
  const auto of = []<class F>(F) {
    return ComplexProductLoops{complex_horizontal<R, F>, complex_rows<R, F>};
  };
  if (conj_a && conj_b) return of(ComplexProduct<R, true, true>());
  if (conj_a) return of(ComplexProduct<R, true, false>());
  return of(ComplexProduct<R, false, false>());
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
Runs runs_of_sum(DType) { return nullptr; }
RowsOfSum rows_of_sum(DType) { return nullptr; }
RowsOfSum rows_of_product(DType, bool, bool) { return nullptr; }
Runs runs_of_product(DType, bool, bool) { return nullptr; }
Runs runs_of_norm2(DType) { return nullptr; }
ExtremumLoops extremum_loops(DType, bool) { return {}; }
ComplexProductLoops complex_product_loops(DType, bool, bool) { return {}; }
#else
// make<R, parts>() for the real type and the parts of a number of this dtype; nothing for others.
template <class Make>
auto for_parts(DType dtype, Make make) -> decltype(make.template operator()<float, 1>()) {
  switch (dtype) {
    case DType::float32:
      return make.template operator()<float, 1>();
    case DType::float64:
      return make.template operator()<double, 1>();
    case DType::complex64:
      return make.template operator()<float, 2>();
    case DType::complex128:
      return make.template operator()<double, 2>();
    default:
      return nullptr;
  }
}

Runs runs_of_sum(DType dtype) {
  return for_parts(dtype, []<class R, int kParts>() -> Runs { return runs<R, Plain<R, kParts>>; });
}
RowsOfSum rows_of_sum(DType dtype) {
  return for_parts(dtype,
                   []<class R, int kParts>() -> RowsOfSum { return rows_of_sum<R, kParts>; });
}
RowsOfSum rows_of_product(DType dtype, bool conj_a, bool number_first) {
  return for_parts(dtype, [&]<class R, int kParts>() {
    return of_rows_of_product<R, kParts>(conj_a, number_first);
  });
}
Runs runs_of_norm2(DType load) {
  return for_parts(load, []<class R, int kParts>() -> Runs {
    return runs<R, std::conditional_t<kParts == 1, Square<R>, Magnitude2<R>>>;
  });
}

Runs runs_of_product(DType dtype, bool conj_a, bool conj_b) {
  const bool complex = is_complex(dtype);
  if (dtype == DType::float32 || dtype == DType::complex64) {
    return of_product<float>(complex, conj_a, conj_b);
  }
  if (dtype == DType::float64 || dtype == DType::complex128) {
    return of_product<double>(complex, conj_a, conj_b);
  }
  return nullptr;
}

template <class R>
ExtremumLoops extremum_loops_of(bool is_max) {
  if (is_max) return {horizontal_of_extremum<R, true>, runs_of_extremum<R, true>, find<R>};
  return {horizontal_of_extremum<R, false>, runs_of_extremum<R, false>, find<R>};
}
ExtremumLoops extremum_loops(DType dtype, bool is_max) {
  if (dtype == DType::float32) return extremum_loops_of<float>(is_max);
  if (dtype == DType::float64) return extremum_loops_of<double>(is_max);
  return {};
}
ComplexProductLoops complex_product_loops(DType dtype, bool conj_a, bool conj_b) {
  if (dtype == DType::complex64) return complex_product_loops_of<float>(conj_a, conj_b);
  if (dtype == DType::complex128) return complex_product_loops_of<double>(conj_a, conj_b);
  return {};
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(runs_of_sum);
HWY_EXPORT(rows_of_sum);
HWY_EXPORT(rows_of_product);
HWY_EXPORT(runs_of_product);
HWY_EXPORT(runs_of_norm2);
HWY_EXPORT(extremum_loops);
HWY_EXPORT(complex_product_loops);

Runs runs_of_sum(DType dtype) { return HWY_DYNAMIC_DISPATCH(runs_of_sum)(dtype); }
RowsOfSum rows_of_sum(DType dtype) { return HWY_DYNAMIC_DISPATCH(rows_of_sum)(dtype); }
RowsOfSum rows_of_product(DType dtype, bool conj_a, bool number_first) {
  return HWY_DYNAMIC_DISPATCH(rows_of_product)(dtype, conj_a, number_first);
}
Runs runs_of_product(DType dtype, bool conj_a, bool conj_b) {
  return HWY_DYNAMIC_DISPATCH(runs_of_product)(dtype, conj_a, conj_b);
}
Runs runs_of_norm2(DType load) { return HWY_DYNAMIC_DISPATCH(runs_of_norm2)(load); }
ExtremumLoops extremum_loops(DType dtype, bool is_max) {
  return HWY_DYNAMIC_DISPATCH(extremum_loops)(dtype, is_max);
}
ComplexProductLoops complex_product_loops(DType dtype, bool conj_a, bool conj_b) {
  return HWY_DYNAMIC_DISPATCH(complex_product_loops)(dtype, conj_a, conj_b);
}

}  // namespace palimpsest
#endif
