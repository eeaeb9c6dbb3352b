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

#include "palimpsest/kernels/fft/split_lanes-inl.hpp"
#include "palimpsest/kernels/fft/split_primes-inl.hpp"
#include "palimpsest/kernels/fft/split_radices-inl.hpp"
#include "palimpsest/kernels/fft/split_transform.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Lines in a vector with four elements of each.
template <class T>
constexpr index_t kDenseLines = kWidth<T> / 4;
// Bytes of scratch that the first level of cache holds beside tables.
constexpr index_t kFirstLevel = 32768;
// Bytes between rows that hardware does not prefetch.
constexpr index_t kFar = 2048;

// ------------------------------------------------------------------------- rows of the array

// Factors of elements 0 .. 4; others repeat them.
template <class T>
struct Pattern {
  T factors[5];
  bool is_one;
  explicit Pattern(const std::array<T, 2>& of)
      : factors{of[0], of[1], of[0], of[1], of[0]}, is_one(of[0] == T{1} && of[1] == T{1}) {}
};

// A side of a panel of rows: kWidth lines side by side, or less. kExchanges: real and imaginary
// parts.
template <class T, bool kExchanges>
struct RowSide {
  T* first;
  index_t step;    // from row to row, in numbers
  index_t second;  // from the first to the second vector of a row
  index_t rows;    // that the array has: those behind them are zeros, or not stored
  index_t lines;   // that are stored
  Pattern<T> pattern;
  bool asks = false;  // prefetches the lines behind these
  // Complex factors of what is stored, where a row is; null: none. `turn_second` is 0 if they are
  // the same for all lines.
  const T* turns = nullptr;
  index_t turn_step = 0, turn_second = 0;
  bool streams = false;  // stores past the caches
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
  if (HWY_LIKELY(side.pattern.is_one)) return;
  z = hn::Set(Lanes<T>(), side.pattern.factors[j & 1]) * z;
}

// Products with complex factors: the transform back exchanges parts afterwards, which conjugates
// the factors.
template <class T, bool kExchanges>
HWY_INLINE void turn_row(const RowSide<T, kExchanges>& side, index_t k, Numbers<T>& z) {
  if (side.turns == nullptr) return;
  const Lanes<T> d;
  const T* const p = side.turns + k * side.turn_step;
  if (side.turn_second == 0) {
    z = times(z, hn::Set(d, p[0]), hn::Set(d, p[1]));
  } else {
    const Numbers<T> w = apart<T>(hn::LoadU(d, p), hn::LoadU(d, p + side.turn_second));
    z = times(z, w.re, w.im);
  }
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
  turn_row(side, k, z);
  multiply_row(side, k, z);
  exchange<kExchanges, T>(z);
  const auto [a, b] = together<T>(z);
  if (side.streams) {
    hn::Stream(a, d, p);
    hn::Stream(b, d, p + side.second);
  } else if (HWY_LIKELY(side.lines == kWidth<T>)) {
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
  Pattern<T> pattern;
};

// Loads elements j .. j + 3 of all lines.
template <class T, bool kExchanges>
HWY_INLINE Numbers<T> load_four_of(const LineSide<T, kExchanges>& side, index_t j) {
  const Lanes<T> d;
  const T* const p = side.first + 2 * j;
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
  const T* const q = p + (sizeof(T) == 4 ? side.line[1] : side.line[0] + 4);
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
// Elements k .. k + 3.
template <class T, bool kExchanges>
HWY_INLINE void multiply_four(const LineSide<T, kExchanges>& side, index_t k, Numbers<T>& z) {
  if (HWY_LIKELY(side.pattern.is_one)) return;
  z = load_four(side.pattern.factors + (k & 1)) * z;
}

// A row of a transform that is joined of four.
template <class T, bool kExchanges>
HWY_INLINE Numbers<T> load_row(const LineSide<T, kExchanges>& side, index_t j) {
  return load_four_of(side, 4 * j);
}
template <class T, bool kExchanges>
HWY_INLINE void multiply_row(const LineSide<T, kExchanges>& side, index_t j, Numbers<T>& z) {
  multiply_four(side, 4 * j, z);
}

// Stores elements k .. k + 3 of all lines.
template <class T, bool kExchanges>
HWY_INLINE void store_four(const LineSide<T, kExchanges>& side, index_t k, Numbers<T> z) {
  const Lanes<T> d;
  T* const p = side.first + 2 * k;
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
  T* const q = p + (sizeof(T) == 4 ? side.line[1] : side.line[0] + 4);
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

// The same for a prime radix.
template <class T>
HWY_NOINLINE void run_prime_blocks(const SplitStage<T>& stage, T* rows, index_t count, T* spare) {
  const index_t distance = stage.distance, step = distance * kRow<T>, radix = stage.radix;
  for (index_t block = 0; block < count; ++block, rows += radix * step) {
    if (distance == 1) {
      run_prime<T>(*stage.products, spare, LoadRows<T>{rows, step}, StoreRows<T>{rows, step});
      continue;
    }
    const T* twiddles = stage.twiddles.data();
    for (index_t j = 0; j < distance; ++j, twiddles += 2 * (radix - 1)) {
      T* const row = rows + j * kRow<T>;
      run_prime<T>(*stage.products, spare, LoadRows<T>{row, step},
                   StoreTurned<T>{row, step, twiddles});
    }
  }
}

template <class T>
void run_blocks(const SplitStage<T>& stage, T* rows, index_t count, T* spare) {
  if (stage.products) return run_prime_blocks(stage, rows, count, spare);
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

// All passes but the first one. Each block of that goes through all others if the rows exceed the
// first level of cache.
template <class T>
void run_later(const SplitTransform<T>& transform, T* rows, T* spare) {
  const auto& stages = transform.stages();
  if (stages.size() < 2) return;
  const index_t m = transform.rows(), distance = stages[0].distance;
  const bool fits = m * kRow<T> * index_t{sizeof(T)} <= kFirstLevel;
  const index_t piece = fits ? m : distance;
  for (T* begin = rows; begin < rows + m * kRow<T>; begin += piece * kRow<T>) {
    index_t length = distance;
    for (std::size_t i = 1; i < stages.size(); ++i) {
      run_blocks(stages[i], begin, piece / length, spare);
      length = stages[i].distance;
    }
  }
}

// A transform in place of rows in scratch.
template <class T>
void run_stages(const SplitTransform<T>& transform, T* rows, T* spare) {
  if (transform.stages().empty()) return;
  run_blocks(transform.stages()[0], rows, 1, spare);
  run_later(transform, rows, spare);
}

// A transform of all rows of `side` to scratch, which leaves them in the order of reversed digits.
template <class T, class Side>
void run_stages(const SplitTransform<T>& transform, const Side& side, T* rows, T* spare) {
  const SplitStage<T> none{1, 1, {}, {}};  // of one row
  const SplitStage<T>& first = transform.stages().empty() ? none : transform.stages()[0];
  switch (first.radix) {
    case 4:
      run_first<4>(side, first, rows);
      break;
    case 8:
      run_first<8>(side, first, rows);
      break;
    case 16:
      run_first<16>(side, first, rows);
      break;
    default:
      for (index_t j = 0; j < transform.rows(); ++j) {
        Numbers<T> z = load_row(side, j);
        multiply_row(side, j, z);
        store_scratch(z, rows + j * kRow<T>);
      }
      return run_stages(transform, rows, spare);
  }
  run_later(transform, rows, spare);
}

// Calls f(places, k, factors) for elements k .. k + 3 of the Y_l, at places[k] .. places[k + 3].
template <class T, class F>
HWY_INLINE void for_fours(const SplitTransform<T>& transform, const F& f) {
  const int* const places = transform.places().data();
  const T* w = transform.joints().data();
  for (const int k : transform.groups()) {
    f(places + k, index_t{k}, w);
    w += 24;
  }
}

// The last step for rows.
template <class T, bool kExchanges>
HWY_NOINLINE void join_rows(const SplitTransform<T>& transform, const T* rows,
                            const RowSide<T, kExchanges>& side) {
  const Lanes<T> d;
  const index_t m = transform.rows(), part = m * kRow<T>;
  for_fours(transform, [&](const int* place, index_t k, const T* w) HWY_ATTR {
    for (const index_t end = k + 4; k < end; ++k, ++w, ++place) {
      const T* const row = rows + *place * kRow<T>;
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
  const index_t m = transform.rows();
  for_fours(transform, [&](const int* places, index_t k, const T* w) HWY_ATTR {
    Vector<T> re[4], im[4];
    for (index_t i = 0; i < 4; ++i) {
      const Numbers<T> z = load_scratch(rows + places[i] * kRow<T>);
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
    for (index_t i = 0; i < 4; ++i) {
      multiply_four(side, k + m * i, z[i]);
      store_four(side, k + m * i, z[i]);
    }
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

// Scratch for a number of rows; behind them that for prime radices.
template <class T>
T* behind(T* rows, index_t count) {
  return rows + count * kRow<T>;
}

template <bool kExchanges, class T>
RowSide<T, kExchanges> row_side(const std::complex<T>* array, index_t line, index_t step,
                                index_t rows, index_t lines, const std::array<T, 2>& factors) {
  const index_t second = kWidth<T> == 1 ? 1 : kWidth<T> * line;
  return {numbers(array), 2 * step, second, rows, lines, Pattern<T>(factors)};
}

// Are rows whole lines of cache?
template <class T, bool kExchanges>
bool are_whole_lines(const RowSide<T, kExchanges>& side) {
  constexpr index_t kLine = 64, kItem = sizeof(T);
  return kRow<T> * kItem % kLine == 0 && side.lines == kWidth<T> && side.second == kWidth<T> &&
         side.step * kItem % kLine == 0 &&
         reinterpret_cast<std::uintptr_t>(side.first) % kLine == 0;
}

// The results of kWidth lines or less, for rows.
template <bool kExchanges, class T>
void store_rows(const SplitTransform<T>& transform, const TransformLines<T>& all, index_t first,
                const T* rows) {
  const index_t lines = std::min(all.lines - first, kWidth<T>);
  auto side = row_side<kExchanges>(all.y + first * all.y_line, all.y_line, all.y_step, all.taken,
                                   lines, all.after);
  if (all.turns != nullptr) {
    side.turns = numbers(all.turns + first * all.turn_line);
    side.turn_step = 2 * all.turn_step;
    side.turn_second = all.turn_line == 0 ? 0 : kWidth<T>;
  }
  side.streams = all.streams && are_whole_lines(side);
  if (transform.is_joined()) return join_rows(transform, rows, side);
  const int* const order = transform.places().data();
  for (index_t k = 0; k < all.taken; ++k) {
    store_row(side, k, load_scratch(rows + order[k] * kRow<T>));
  }
}

// kWidth lines or less from number `first` on, joined of four.
template <bool kExchanges, class T>
void run_joined_rows(const SplitTransform<T>& transform, const TransformLines<T>& all,
                     index_t first, T* rows) {
  const index_t lines = std::min(all.lines - first, kWidth<T>), m = transform.rows();
  auto in = row_side<kExchanges>(all.x + first * all.x_line, all.x_line, 4 * all.x_step, 0, lines,
                                 all.before);
  in.asks = std::abs(2 * all.x_step) * index_t{sizeof(T)} >= kFar && all.x_line == 1;
  for (index_t l = 0; l < 4; ++l, in.first += 2 * all.x_step) {
    T* const part = rows + l * m * kRow<T>;
    const T factor = all.before[static_cast<std::size_t>(l % 2)];
    in.pattern = Pattern<T>({factor, factor});
    in.rows = (std::max<index_t>(all.given - l, 0) + 3) / 4;
    run_stages(transform, lines == kWidth<T> ? in : fill_up(in, m, part), part,
               behind(rows, transform.size()));
  }
  store_rows<kExchanges>(transform, all, first, rows);
}

// The same, not joined.
template <bool kExchanges, class T>
void run_plain_rows(const SplitTransform<T>& transform, const TransformLines<T>& all, index_t first,
                    T* rows) {
  const index_t lines = std::min(all.lines - first, kWidth<T>), n = transform.size();
  T* const spare = behind(rows, n);
  auto in = row_side<kExchanges>(all.x + first * all.x_line, all.x_line, all.x_step, all.given,
                                 lines, all.before);
  in.asks = std::abs(in.step) * index_t{sizeof(T)} >= kFar && all.x_line == 1;
  if (lines < kWidth<T>) in = fill_up(in, n, rows);
  run_stages(transform, in, rows, spare);
  store_rows<kExchanges>(transform, all, first, rows);
}

#if HWY_TARGET != HWY_SCALAR
// A side of up to kDenseLines lines, number(c) for c = 0, 1, .., of those before `end`; in their
// place behind it the last one.
template <bool kExchanges, class T, class Number>
LineSide<T, kExchanges> line_side(const std::complex<T>* array, index_t line, index_t end,
                                  const std::array<T, 2>& factors, const Number& number) {
  LineSide<T, kExchanges> side{numbers(array), {}, 0, Pattern<T>(factors)};
  for (index_t c = 0; c < 4; ++c) {
    if (c < kDenseLines<T> && number(c) < end) side.lines = c + 1;
    side.line[static_cast<std::size_t>(c)] = 2 * line * std::min(number(c), end - 1);
  }
  return side;
}

template <bool kExchanges, class T>
void run_lines(const SplitTransform<T>& transform, const TransformLines<T>& all, index_t first,
               T* rows) {
  const auto number = [first](index_t c) { return first + c; };
  const auto in = line_side<kExchanges>(all.x, all.x_line, all.lines, all.before, number);
  run_stages(transform, in, rows, behind(rows, transform.rows()));
  join_lines(transform, rows,
             line_side<kExchanges>(all.y, all.y_line, all.lines, all.after, number));
}

// Number of the line in a lane of a row that is loaded from an array: see apart().
template <class T>
constexpr index_t line_of_lane(index_t lane) {
  constexpr index_t kHalf = kWidth<T> / 2, kInBlock = 16 / index_t{sizeof(T)};
  const index_t block = lane / kInBlock, i = lane % kInBlock, from_each = kInBlock / 2;
  return block * from_each + i % from_each + (i < from_each ? 0 : kHalf);
}

// kWidth lines as four sides whose transposition has their order.
template <bool kExchanges, class T>
using FourSides = std::array<LineSide<T, kExchanges>, 4>;
template <bool kExchanges, class T>
FourSides<kExchanges, T> four_sides(const std::complex<T>* array, index_t line, index_t first,
                                    index_t end, const std::array<T, 2>& factors) {
  const auto side = [&](index_t g) {
    return line_side<kExchanges>(array, line, end, factors, [first, g](index_t c) {
      return first + line_of_lane<T>(4 * c + g);
    });
  };
  return {side(0), side(1), side(2), side(3)};
}

// Loads kWidth dense lines to rows of scratch, row(j) for element j, in squares of four; the last
// ones overlap those before.
template <bool kExchanges, class T, class Row>
HWY_NOINLINE void load_lines(const FourSides<kExchanges, T>& sides, index_t n, T* rows,
                             const Row& row) {
  const Lanes<T> d;
  for (index_t e = 0; e < n; e += 4) {
    const index_t j = std::min(e, n - 4);
    Vector<T> re[4], im[4];
    for (std::size_t g = 0; g < 4; ++g) {
      const Numbers<T> z = load_four_of(sides[g], j);
      re[g] = z.re;
      im[g] = z.im;
    }
    transpose<T>(re);
    transpose<T>(im);
    for (index_t i = 0; i < 4; ++i) {
      Numbers<T> z{re[i], im[i]};
      const Pattern<T>& pattern = sides[0].pattern;
      if (!pattern.is_one) z = hn::Set(d, pattern.factors[(j + i) & 1]) * z;
      store_scratch(z, rows + row(j + i) * kRow<T>);
    }
  }
}
template <bool kExchanges, class T>
HWY_NOINLINE void store_lines(const FourSides<kExchanges, T>& sides, index_t n, const T* rows,
                              const int* order) {
  const Lanes<T> d;
  for (index_t e = 0; e < n; e += 4) {
    const index_t k = std::min(e, n - 4);
    Vector<T> re[4], im[4];
    for (index_t i = 0; i < 4; ++i) {
      Numbers<T> z = load_scratch(rows + order[k + i] * kRow<T>);
      const Pattern<T>& pattern = sides[0].pattern;
      if (!pattern.is_one) z = hn::Set(d, pattern.factors[(k + i) & 1]) * z;
      re[i] = z.re;
      im[i] = z.im;
    }
    transpose<T>(re);
    transpose<T>(im);
    for (std::size_t g = 0; g < 4; ++g) {
      if (sides[g].lines > 0) store_four(sides[g], k, {re[g], im[g]});
    }
  }
}

// kWidth dense lines or less from number `first` on, by rows.
template <bool kExchanges, class T>
void run_lines_by_rows(const SplitTransform<T>& transform, const TransformLines<T>& all,
                       index_t first, T* rows) {
  const index_t n = transform.size(), m = transform.rows();
  T* const spare = behind(rows, n);
  const auto in = four_sides<kExchanges>(all.x, all.x_line, first, all.lines, all.before);
  if (transform.is_joined()) {
    const auto row = [m](index_t j) HWY_ATTR { return (j & 3) * m + (j >> 2); };
    load_lines<kExchanges>(in, n, rows, row);
    for (index_t l = 0; l < 4; ++l) run_stages(transform, behind(rows, l * m), spare);
  } else {
    load_lines<kExchanges>(in, n, rows, [](index_t j) HWY_ATTR { return j; });
    run_stages(transform, rows, spare);
  }
  if (all.y_step != 1) return store_rows<kExchanges>(transform, all, first, rows);
  store_lines<kExchanges>(four_sides<kExchanges>(all.y, all.y_line, first, all.lines, all.after), n,
                          rows, transform.places().data());
}
#endif  // HWY_TARGET != HWY_SCALAR

template <bool kExchanges, class T>
void run_panel(const SplitTransform<T>& transform, const TransformLines<T>& all, T* rows) {
#if HWY_TARGET != HWY_SCALAR
  // A vector that does not hold four elements takes one of each of its lines.
  if constexpr (kWidth<T> >= 4) {
    if (all.x_step == 1 && transform.size() >= 4) {
      const bool joins = transform.is_joined() && all.y_step == 1;
      for (index_t c = 0; c < all.lines; c += joins ? kDenseLines<T> : kWidth<T>) {
        joins ? run_lines<kExchanges>(transform, all, c, rows)
              : run_lines_by_rows<kExchanges>(transform, all, c, rows);
      }
      return;
    }
  }
#endif
  for (index_t c = 0; c < all.lines; c += kWidth<T>) {
    transform.is_joined() ? run_joined_rows<kExchanges>(transform, all, c, rows)
                          : run_plain_rows<kExchanges>(transform, all, c, rows);
  }
}

template <class T>
void run_split(const SplitTransform<T>& transform, const TransformLines<T>& lines, T* rows) {
  lines.forward ? run_panel<false>(transform, lines, rows)
                : run_panel<true>(transform, lines, rows);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#endif  // PALIMPSEST_SPLIT_PASSES_INL
