// SPDX-License-Identifier: Apache-2.0
// Internal: passes of SplitTransform. Compiled once per instruction set.
//
// Scratch has rows of two vectors: real parts, imaginary parts. The first pass loads from the
// array, the last one stores there.
#if defined(PALIMPSEST_SPLIT_PASSES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PALIMPSEST_SPLIT_PASSES_INL
#undef PALIMPSEST_SPLIT_PASSES_INL
#else
#define PALIMPSEST_SPLIT_PASSES_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "palimpsest/kernels/fft/split_radices-inl.hpp"
#include "palimpsest/kernels/fft/split_transform.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Lanes = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Lanes<T>>;
template <class T>
using Numbers = Split<Vector<T>>;
template <class T>
constexpr index_t kWidth = hn::MaxLanes(Lanes<T>());
// Lines in a vector with four elements of each.
template <class T>
constexpr index_t kDenseLines = kWidth<T> / 4;
// Bytes of scratch that the first level of cache holds beside tables.
constexpr index_t kFirstLevel = 32768;
// Bytes between rows that hardware does not prefetch.
constexpr index_t kFar = 2048;

// ------------------------------------------------------------------------- exchanges of lanes

// Real parts, and imaginary parts, of the complex numbers in a and b. Block by block: lanes of a,
// then lanes of b.
template <class T>
HWY_INLINE Numbers<T> apart(Vector<T> a, Vector<T> b) {
#if HWY_TARGET == HWY_SCALAR
  return {a, b};
#else
  const Lanes<T> d;
  if constexpr (sizeof(T) == 8) {
    return {hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)};
  } else {
#if HWY_TARGET <= HWY_AVX3
    return {Vector<T>{_mm512_shuffle_ps(a.raw, b.raw, _MM_SHUFFLE(2, 0, 2, 0))},
            Vector<T>{_mm512_shuffle_ps(a.raw, b.raw, _MM_SHUFFLE(3, 1, 3, 1))}};
#elif HWY_TARGET == HWY_AVX2
    return {Vector<T>{_mm256_shuffle_ps(a.raw, b.raw, _MM_SHUFFLE(2, 0, 2, 0))},
            Vector<T>{_mm256_shuffle_ps(a.raw, b.raw, _MM_SHUFFLE(3, 1, 3, 1))}};
#else
    return {hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a)};
#endif
  }
#endif
}
// The inverse: a, then b.
template <class T>
HWY_INLINE std::array<Vector<T>, 2> together(Numbers<T> z) {
#if HWY_TARGET == HWY_SCALAR
  return {z.re, z.im};
#else
  const Lanes<T> d;
  return {hn::InterleaveLower(d, z.re, z.im), hn::InterleaveUpper(d, z.re, z.im)};
#endif
}

template <bool kExchanges, class T>
HWY_INLINE void exchange(Numbers<T>& z) {
  if constexpr (kExchanges) {
    const Vector<T> re = z.re;
    z.re = z.im;
    z.im = re;
  }
}

#if HWY_TARGET != HWY_SCALAR
#if HWY_TARGET <= HWY_AVX3
// Lanes of a and, from number kWidth on, of b.
template <int... kLanes>
HWY_INLINE Vector<float> select(Vector<float> a, Vector<float> b) {
  alignas(64) static constexpr std::int32_t kTable[] = {kLanes...};
  return Vector<float>{_mm512_permutex2var_ps(a.raw, _mm512_load_si512(kTable), b.raw)};
}
template <int... kLanes>
HWY_INLINE Vector<double> select(Vector<double> a, Vector<double> b) {
  alignas(64) static constexpr std::int64_t kTable[] = {kLanes...};
  return Vector<double>{_mm512_permutex2var_pd(a.raw, _mm512_load_si512(kTable), b.raw)};
}
#endif

// Transposes the squares of four lanes of four vectors.
template <class T>
HWY_INLINE void transpose(Vector<T> (&r)[4]) {
  const Lanes<T> d;
  const Vector<T> a = hn::InterleaveLower(d, r[0], r[1]), b = hn::InterleaveUpper(d, r[0], r[1]);
  const Vector<T> c = hn::InterleaveLower(d, r[2], r[3]), e = hn::InterleaveUpper(d, r[2], r[3]);
  if constexpr (sizeof(T) == 4) {
    const hn::RepartitionToWide<Lanes<T>> pairs;
    const auto wide = [&](Vector<T> v) HWY_ATTR { return hn::BitCast(pairs, v); };
    r[0] = hn::BitCast(d, hn::InterleaveLower(pairs, wide(a), wide(c)));
    r[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, wide(a), wide(c)));
    r[2] = hn::BitCast(d, hn::InterleaveLower(pairs, wide(b), wide(e)));
    r[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, wide(b), wide(e)));
  } else {
#if HWY_TARGET <= HWY_AVX3
    r[0] = select<0, 1, 8, 9, 4, 5, 12, 13>(a, c);
    r[1] = select<0, 1, 8, 9, 4, 5, 12, 13>(b, e);
    r[2] = select<2, 3, 10, 11, 6, 7, 14, 15>(a, c);
    r[3] = select<2, 3, 10, 11, 6, 7, 14, 15>(b, e);
#elif HWY_TARGET == HWY_AVX2
    r[0] = hn::ConcatLowerLower(d, c, a);
    r[1] = hn::ConcatLowerLower(d, e, b);
    r[2] = hn::ConcatUpperUpper(d, c, a);
    r[3] = hn::ConcatUpperUpper(d, e, b);
#endif
  }
}

// Four numbers, repeated in all lanes.
template <class T>
HWY_INLINE Vector<T> load_four(const T* p) {
  const Lanes<T> d;
  if constexpr (sizeof(T) == 4) {
    return hn::LoadDup128(d, p);
  } else {
#if HWY_TARGET <= HWY_AVX3
    return Vector<T>{_mm512_broadcast_f64x4(_mm256_loadu_pd(p))};
#else
    return hn::LoadU(d, p);
#endif
  }
}
#endif  // HWY_TARGET != HWY_SCALAR

// ------------------------------------------------------------------------- rows of the array

// A side of a panel of rows: kWidth lines side by side, or less. kExchanges: real and imaginary
// parts.
template <class T, bool kExchanges>
struct RowSide {
  T* first;
  index_t step;      // from row to row, in numbers
  index_t second;    // from the first to the second vector of a row
  index_t rows;      // that the array has: those behind them are zeros, or not stored
  index_t lines;     // that are stored
  const T* factors;  // of rows, `factor_step` apart; null: none
  index_t factor_step;
  bool asks;  // prefetches the lines behind these
};

// Copies the numbers of `lines` lines between a row and two vectors.
template <class T>
HWY_INLINE void copy_part(const T* from, index_t from_second, T* to, index_t to_second,
                          index_t lines) {
  const index_t in_first = std::min(lines, std::max<index_t>(kWidth<T> / 2, 1));
  std::memcpy(to, from, static_cast<std::size_t>(2 * in_first) * sizeof(T));
  if (lines == in_first) return;
  std::memcpy(to + to_second, from + from_second,
              static_cast<std::size_t>(2 * (lines - in_first)) * sizeof(T));
}

// Prefetches a row into the second level: there are more rows than the first one holds.
template <class T>
HWY_INLINE void ask_for(const T* row) {
  constexpr index_t kLine = 64 / index_t{sizeof(T)};
  for (index_t i = 0; i < 2 * kWidth<T>; i += kLine) __builtin_prefetch(row + i, 0, 2);
}

template <class T, bool kExchanges>
HWY_INLINE Numbers<T> load_row(const RowSide<T, kExchanges>& side, index_t j) {
  const Lanes<T> d;
  Vector<T> a = hn::Zero(d), b = a;
  if (HWY_LIKELY(j < side.rows)) {
    const T* const p = side.first + j * side.step;
    if (side.asks) ask_for(p + 2 * kWidth<T>);
    a = hn::LoadU(d, p);
    b = hn::LoadU(d, p + side.second);
  }
  Numbers<T> z = apart<T>(a, b);
  exchange<kExchanges, T>(z);
  return z;
}
template <class T, bool kExchanges>
HWY_INLINE void multiply_row(const RowSide<T, kExchanges>& side, index_t j, Numbers<T>& z) {
  if (side.factors == nullptr) return;
  const Vector<T> factor = hn::Set(Lanes<T>(), side.factors[j * side.factor_step]);
  z.re = hn::Mul(z.re, factor);
  z.im = hn::Mul(z.im, factor);
}

template <class T, bool kExchanges>
HWY_NOINLINE void store_part(const RowSide<T, kExchanges>& side, index_t k, const T* both) {
  copy_part(both, kWidth<T>, side.first + k * side.step, side.second, side.lines);
}
template <class T, bool kExchanges>
HWY_INLINE void store_row(const RowSide<T, kExchanges>& side, index_t k, Numbers<T> z) {
  const Lanes<T> d;
  if (HWY_UNLIKELY(k >= side.rows)) return;
  T* const p = side.first + k * side.step;
  multiply_row(side, k, z);
  exchange<kExchanges, T>(z);
  const auto [a, b] = together<T>(z);
  if (HWY_LIKELY(side.lines == kWidth<T>)) {
    hn::StoreU(a, d, p);
    hn::StoreU(b, d, p + side.second);
  } else {
    HWY_ALIGN T both[2 * kWidth<T>];
    hn::Store(a, d, both);
    hn::Store(b, d, both + kWidth<T>);
    store_part(side, k, both);
  }
}

// ------------------------------------------------------------------------- dense lines

#if HWY_TARGET != HWY_SCALAR

// A side of a panel of kDenseLines lines.
template <class T, bool kExchanges>
struct LineSide {
  T* first;
  std::array<index_t, 4> line;  // offsets of the lines in numbers; those in excess repeat the last
  index_t lines;
  const T* factors;  // null: none
};

// Loads elements 4 j .. 4 j + 3 of all lines.
template <class T, bool kExchanges>
HWY_INLINE Numbers<T> load_row(const LineSide<T, kExchanges>& side, index_t j) {
  const Lanes<T> d;
  const T* const p = side.first + 8 * j;
#if HWY_TARGET <= HWY_AVX3
  Vector<T> a, b;
  if constexpr (sizeof(T) == 4) {
    const hn::Half<Lanes<T>> half;
    a = hn::Combine(d, hn::LoadU(half, p + side.line[1]), hn::LoadU(half, p + side.line[0]));
    b = hn::Combine(d, hn::LoadU(half, p + side.line[3]), hn::LoadU(half, p + side.line[2]));
  } else {
    a = hn::LoadU(d, p + side.line[0]);
    b = hn::LoadU(d, p + side.line[1]);
  }
  Numbers<T> z{hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a)};
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<Lanes<T>> half;
  // Blocks of a and b: elements 0, 1 and 2, 3 of two lines, or elements 0, 2 and 1, 3 of one.
  const T* const q = sizeof(T) == 4 ? p + side.line[1] : p + 4;
  constexpr index_t kNext = sizeof(T) == 4 ? 4 : 2;
  const Vector<T> a = hn::Combine(d, hn::LoadU(half, q), hn::LoadU(half, p + side.line[0]));
  const Vector<T> b =
      hn::Combine(d, hn::LoadU(half, q + kNext), hn::LoadU(half, p + side.line[0] + kNext));
  Numbers<T> z = apart<T>(a, b);
#else
  Numbers<T> z = apart<T>(hn::LoadU(d, p + side.line[0]), hn::LoadU(d, p + side.line[0] + 4));
#endif
  exchange<kExchanges, T>(z);
  return z;
}
template <class T, bool kExchanges>
HWY_INLINE void multiply_row(const LineSide<T, kExchanges>& side, index_t j, Numbers<T>& z) {
  if (side.factors == nullptr) return;
  const Vector<T> factor = load_four(side.factors + 4 * j);
  z.re = hn::Mul(z.re, factor);
  z.im = hn::Mul(z.im, factor);
}

// Stores elements k .. k + 3 of all lines.
template <class T, bool kExchanges>
HWY_INLINE void store_four(const LineSide<T, kExchanges>& side, index_t k, Numbers<T> z) {
  const Lanes<T> d;
  T* const p = side.first + 2 * k;
  if (side.factors != nullptr) {
    const Vector<T> factor = load_four(side.factors + k);
    z.re = hn::Mul(z.re, factor);
    z.im = hn::Mul(z.im, factor);
  }
  exchange<kExchanges, T>(z);
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(T) == 4) {
    const hn::Half<Lanes<T>> half;
    const Vector<T> a = select<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(z.re, z.im);
    const Vector<T> b =
        select<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(z.re, z.im);
    hn::StoreU(hn::LowerHalf(half, a), half, p + side.line[0]);
    if (side.lines > 1) hn::StoreU(hn::UpperHalf(half, a), half, p + side.line[1]);
    if (side.lines > 2) hn::StoreU(hn::LowerHalf(half, b), half, p + side.line[2]);
    if (side.lines > 3) hn::StoreU(hn::UpperHalf(half, b), half, p + side.line[3]);
  } else {
    hn::StoreU(select<0, 8, 1, 9, 2, 10, 3, 11>(z.re, z.im), d, p + side.line[0]);
    if (side.lines > 1) {
      hn::StoreU(select<4, 12, 5, 13, 6, 14, 7, 15>(z.re, z.im), d, p + side.line[1]);
    }
  }
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<Lanes<T>> half;
  const auto [a, b] = together<T>(z);
  T* const q = sizeof(T) == 4 ? p + side.line[1] : p + 4;
  constexpr index_t kNext = sizeof(T) == 4 ? 4 : 2;
  hn::StoreU(hn::LowerHalf(half, a), half, p + side.line[0]);
  hn::StoreU(hn::LowerHalf(half, b), half, p + side.line[0] + kNext);
  if (sizeof(T) == 8 || side.lines > 1) {
    hn::StoreU(hn::UpperHalf(half, a), half, q);
    hn::StoreU(hn::UpperHalf(half, b), half, q + kNext);
  }
#else
  const auto [a, b] = together<T>(z);
  hn::StoreU(a, d, p + side.line[0]);
  hn::StoreU(b, d, p + side.line[0] + 4);
#endif
}
#endif  // HWY_TARGET != HWY_SCALAR

// ------------------------------------------------------------------------- passes

template <class T>
HWY_INLINE Numbers<T> load_scratch(const T* row) {
  const Lanes<T> d;
  return {hn::Load(d, row), hn::Load(d, row + kWidth<T>)};
}
template <class T>
HWY_INLINE void store_scratch(Numbers<T> z, T* row) {
  const Lanes<T> d;
  hn::Store(z.re, d, row);
  hn::Store(z.im, d, row + kWidth<T>);
}
template <class T>
constexpr index_t kRow = 2 * kWidth<T>;  // numbers in a row of scratch

// Rows j, j + distance, .. of the array, with their factors.
template <class T, class Side>
struct LoadFirst {
  const Side& side;
  index_t j, distance;
  HWY_INLINE Numbers<T> operator()(int q) const {
    const index_t row = j + q * distance;
    Numbers<T> z = load_row(side, row);
    multiply_row(side, row, z);
    return z;
  }
};
// Rows of scratch from `row` on, `step` numbers apart.
template <class T>
struct LoadRows {
  const T* row;
  index_t step;
  HWY_INLINE Numbers<T> operator()(int q) const { return load_scratch(row + q * step); }
};
template <class T>
struct StoreRows {
  T* row;
  index_t step;
  HWY_INLINE void operator()(int q, Numbers<T> z) const { store_scratch(z, row + q * step); }
};
template <class T>
struct StoreTurned {
  T* row;
  index_t step;
  const T* twiddles;
  HWY_INLINE void operator()(int q, Numbers<T> z) const {
    const Lanes<T> d;
    if (q == 0) return store_scratch(z, row);
    store_scratch(times(z, hn::Set(d, twiddles[2 * q - 2]), hn::Set(d, twiddles[2 * q - 1])),
                  row + q * step);
  }
};

// The first pass, from the array to scratch.
template <int kRadix, class T, class Side>
HWY_NOINLINE void run_first(const Side& side, const SplitStage<T>& stage, T* rows) {
  const Lanes<T> d;
  const index_t distance = stage.distance, step = distance * kRow<T>;
  if (distance == 1) {
    run_radix<kRadix>(d, LoadFirst<T, Side>{side, 0, 1}, StoreRows<T>{rows, step});
    return;
  }
  const T* twiddles = stage.twiddles.data();
  for (index_t j = 0; j < distance; ++j, rows += kRow<T>, twiddles += 2 * (kRadix - 1)) {
    run_radix<kRadix>(d, LoadFirst<T, Side>{side, j, distance},
                      StoreTurned<T>{rows, step, twiddles});
  }
}
// A later pass, in place on `count` blocks.
template <int kRadix, class T>
HWY_NOINLINE void run_blocks(const SplitStage<T>& stage, T* rows, index_t count) {
  const Lanes<T> d;
  const index_t distance = stage.distance, step = distance * kRow<T>;
  for (index_t block = 0; block < count; ++block, rows += kRadix * step) {
    if (distance == 1) {
      run_radix<kRadix>(d, LoadRows<T>{rows, step}, StoreRows<T>{rows, step});
      continue;
    }
    const T* twiddles = stage.twiddles.data();
    for (index_t j = 0; j < distance; ++j, twiddles += 2 * (kRadix - 1)) {
      T* const row = rows + j * kRow<T>;
      run_radix<kRadix>(d, LoadRows<T>{row, step}, StoreTurned<T>{row, step, twiddles});
    }
  }
}

template <class T>
void run_blocks(const SplitStage<T>& stage, T* rows, index_t count) {
  switch (stage.radix) {
    case 2:
      return run_blocks<2>(stage, rows, count);
    case 3:
      return run_blocks<3>(stage, rows, count);
    case 4:
      return run_blocks<4>(stage, rows, count);
    case 5:
      return run_blocks<5>(stage, rows, count);
    case 6:
      return run_blocks<6>(stage, rows, count);
    case 7:
      return run_blocks<7>(stage, rows, count);
    case 8:
      return run_blocks<8>(stage, rows, count);
    default:
      return run_blocks<16>(stage, rows, count);
  }
}

// A transform of all rows of `side` to scratch, which leaves them in the order of reversed digits.
// Each block of the first pass goes through all others if the rows exceed the first level of cache.
template <class T, class Side>
void run_stages(const SplitTransform<T>& transform, const Side& side, T* rows) {
  const auto& stages = transform.stages();
  const SplitStage<T>& first = stages[0];
  switch (first.radix) {
    case 4:
      run_first<4>(side, first, rows);
      break;
    case 8:
      run_first<8>(side, first, rows);
      break;
    default:
      run_first<16>(side, first, rows);
      break;
  }
  const index_t m = transform.size() / 4;
  const bool fits = m * kRow<T> * index_t{sizeof(T)} <= kFirstLevel;
  const index_t piece = fits ? m : first.distance;
  for (T* begin = rows; begin < rows + m * kRow<T>; begin += piece * kRow<T>) {
    index_t length = first.distance;
    for (std::size_t i = 1; i < stages.size(); ++i) {
      run_blocks(stages[i], begin, piece / length);
      length = stages[i].distance;
    }
  }
}

// Calls f(p, k, factors) for positions p, p + distance, p + 2 distance, p + 3 distance that hold
// elements k .. k + 3.
template <class T, class F>
HWY_INLINE void for_fours(const SplitTransform<T>& transform, const F& f) {
  const SplitStage<T>& first = transform.stages()[0];
  const int* const order = transform.order().data();
  const T* w = transform.joints().data();
  for (index_t p = 0; p < first.distance; ++p) {
    for (index_t q = 0; q < first.radix; q += 4, w += 24) {
      f(p + q * first.distance, order[p] + q, w);
    }
  }
}

// The last step for rows.
template <class T, bool kExchanges>
HWY_NOINLINE void join_rows(const SplitTransform<T>& transform, const T* rows,
                            const RowSide<T, kExchanges>& side) {
  const Lanes<T> d;
  const index_t m = transform.size() / 4, part = m * kRow<T>;
  const index_t step = transform.stages()[0].distance * kRow<T>;
  for_fours(transform, [&](index_t p, index_t k, const T* w) HWY_ATTR {
    const T* row = rows + p * kRow<T>;
    for (const index_t end = k + 4; k < end; ++k, ++w, row += step) {
      Numbers<T> z[4] = {load_scratch(row),
                         times(load_scratch(row + part), hn::Set(d, w[0]), hn::Set(d, w[4])),
                         times(load_scratch(row + 2 * part), hn::Set(d, w[8]), hn::Set(d, w[12])),
                         times(load_scratch(row + 3 * part), hn::Set(d, w[16]), hn::Set(d, w[20]))};
      four(z[0], z[1], z[2], z[3]);
      store_row(side, k, z[0]);
      store_row(side, k + m, z[1]);
      store_row(side, k + 2 * m, z[2]);
      store_row(side, k + 3 * m, z[3]);
    }
  });
}

#if HWY_TARGET != HWY_SCALAR
// The last step for dense lines: a row holds an element of all Y_l.
template <class T, bool kExchanges>
HWY_NOINLINE void join_lines(const SplitTransform<T>& transform, const T* rows,
                             const LineSide<T, kExchanges>& side) {
  const index_t m = transform.size() / 4, step = transform.stages()[0].distance * kRow<T>;
  for_fours(transform, [&](index_t p, index_t k, const T* w) HWY_ATTR {
    Vector<T> re[4], im[4];
    for (index_t i = 0; i < 4; ++i) {
      const Numbers<T> z = load_scratch(rows + p * kRow<T> + i * step);
      re[i] = z.re;
      im[i] = z.im;
    }
    transpose<T>(re);
    transpose<T>(im);
    Numbers<T> z[4] = {{re[0], im[0]},
                       times<Vector<T>>({re[1], im[1]}, load_four(w), load_four(w + 4)),
                       times<Vector<T>>({re[2], im[2]}, load_four(w + 8), load_four(w + 12)),
                       times<Vector<T>>({re[3], im[3]}, load_four(w + 16), load_four(w + 20))};
    four(z[0], z[1], z[2], z[3]);
    for (index_t i = 0; i < 4; ++i) store_four(side, k + m * i, z[i]);
  });
}
#endif  // HWY_TARGET != HWY_SCALAR

// Copies lines that do not fill a vector to rows of scratch, beside zeros.
template <class T, bool kExchanges>
HWY_NOINLINE RowSide<T, kExchanges> fill_up(const RowSide<T, kExchanges>& side, index_t count,
                                            T* rows) {
  for (index_t j = 0; j < count; ++j) {
    T* const row = rows + j * kRow<T>;
    std::fill_n(row, kRow<T>, T{0});
    if (j < side.rows) {
      copy_part(side.first + j * side.step, side.second, row, kWidth<T>, side.lines);
    }
  }
  RowSide<T, kExchanges> copy = side;
  copy.first = rows;
  copy.step = kRow<T>;
  copy.second = kWidth<T>;
  return copy;
}

// The numbers of an array that is only read.
template <class T>
T* numbers(const std::complex<T>* z) {
  return const_cast<T*>(reinterpret_cast<const T*>(z));
}

// kWidth lines or less from number `first` on.
template <bool kExchanges, class T>
void run_rows(const SplitTransform<T>& transform, const SplitLines<T>& all, index_t first,
              T* rows) {
  const index_t lines = std::min(all.lines - first, kWidth<T>), m = transform.size() / 4;
  const auto side = [&](T* array, index_t line, index_t step, index_t count, const T* factors) {
    const index_t second = kWidth<T> == 1 ? 1 : kWidth<T> * line;
    return RowSide<T, kExchanges>{array, 2 * step, second, count, lines, factors, 1, false};
  };
  RowSide<T, kExchanges> in =
      side(numbers(all.x + first * all.x_line), all.x_line, 4 * all.x_step, 0, all.before);
  in.factor_step = 4;
  in.asks = std::abs(2 * all.x_step) * index_t{sizeof(T)} >= kFar && all.x_line == 1;
  for (index_t l = 0; l < 4; ++l, in.first += 2 * all.x_step) {
    T* const part = rows + l * m * kRow<T>;
    in.rows = (std::max<index_t>(all.given - l, 0) + 3) / 4;
    run_stages(transform, lines == kWidth<T> ? in : fill_up(in, m, part), part);
    if (in.factors != nullptr) ++in.factors;
  }
  T* const y = numbers(all.y + first * all.y_line);
  join_rows(transform, rows, side(y, all.y_line, all.y_step, all.taken, all.after));
}

#if HWY_TARGET != HWY_SCALAR
template <bool kExchanges, class T>
void run_lines(const SplitTransform<T>& transform, const SplitLines<T>& all, index_t first,
               T* rows) {
  const index_t lines = std::min(all.lines - first, kDenseLines<T>);
  LineSide<T, kExchanges> in{numbers(all.x + first * all.x_line), {}, lines, all.before};
  LineSide<T, kExchanges> out{numbers(all.y + first * all.y_line), {}, lines, all.after};
  for (std::size_t c = 0; c < 4; ++c) {
    const index_t line = std::min(static_cast<index_t>(c), lines - 1);
    in.line[c] = 2 * line * all.x_line;
    out.line[c] = 2 * line * all.y_line;
  }
  run_stages(transform, in, rows);
  join_lines(transform, rows, out);
}
#endif  // HWY_TARGET != HWY_SCALAR

template <bool kExchanges, class T>
void run_panel(const SplitTransform<T>& transform, const SplitLines<T>& all, T* rows) {
#if HWY_TARGET != HWY_SCALAR
  // A vector that does not hold four elements takes one of each of its lines.
  if constexpr (kWidth<T> >= 4) {
    if (all.x_step == 1 && all.y_step == 1) {
      for (index_t c = 0; c < all.lines; c += kDenseLines<T>) {
        run_lines<kExchanges>(transform, all, c, rows);
      }
      return;
    }
  }
#endif
  for (index_t c = 0; c < all.lines; c += kWidth<T>) {
    run_rows<kExchanges>(transform, all, c, rows);
  }
}

template <class T>
void run_split(const SplitTransform<T>& transform, const SplitLines<T>& lines, T* rows) {
  lines.forward ? run_panel<false>(transform, lines, rows)
                : run_panel<true>(transform, lines, rows);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_SPLIT_PASSES_INL
