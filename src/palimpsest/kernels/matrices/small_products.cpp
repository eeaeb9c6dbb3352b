// SPDX-License-Identifier: Apache-2.0
// Products of small matrices, a few rows of the result at a time. This file is compiled once per
// instruction set; the best one is chosen when the program runs.
//
// Columns are padded to a power of two. Complex numbers stay pairs: rows are multiplied by the real
// and by the imaginary parts of a in two sums, and the second sum is finally multiplied by i.
#include "palimpsest/kernels/matrices/small_products.hpp"

#include <algorithm>
#include <utility>

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/matrices/small_products.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Dense copies of rows of b that are strided, conjugated or shorter than kColumns.
template <class R, int kParts, int kColumns>
void pack_rows(const SmallProduct& s, const R* b, R* to) {
  for (index_t p = 0; p < s.k; ++p) {
    for (index_t j = 0; j < kColumns; ++j) {
      for (index_t part = 0; part < kParts; ++part) {
        R value{};
        if (j < s.n) value = b[kParts * (p * s.b_row + j * s.b_col) + part];
        *to++ = part == 1 && s.conj_b ? -value : value;
      }
    }
  }
}

// Rows i to i + kRows of the result; rows of b, kColumns long, are `step` numbers apart.
template <class R, int kParts, int kColumns, int kRows>
HWY_INLINE void product_rows(const SmallProduct& s, const R* a, const R* b, index_t step, R* out,
                             index_t i) {
  constexpr int kWidth = kParts * kColumns;
  const hn::CappedTag<R, kWidth> d;
  using V = hn::Vec<decltype(d)>;
  constexpr auto kLanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<R, kWidth>()));
  constexpr int kVectors = kWidth / kLanes;
  V re[kRows][kVectors], im[kRows][kVectors];
  for (int q = 0; q < kRows; ++q) {
    for (int v = 0; v < kVectors; ++v) re[q][v] = im[q][v] = hn::Zero(d);
  }
  for (index_t p = 0; p < s.k; ++p) {
    V x[kVectors];
    for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, b + p * step + v * kLanes);
    for (int q = 0; q < kRows; ++q) {
      const R* const factor = a + kParts * ((i + q) * s.a_row + p * s.a_col);
      const V real = hn::Set(d, factor[0]);
      V imaginary = real;
      if constexpr (kParts == 2) imaginary = hn::Set(d, s.conj_a ? -factor[1] : factor[1]);
      for (int v = 0; v < kVectors; ++v) {
        re[q][v] = hn::Add(re[q][v], hn::Mul(real, x[v]));
        if constexpr (kParts == 2) im[q][v] = hn::Add(im[q][v], hn::Mul(imaginary, x[v]));
      }
    }
  }
  HWY_ALIGN R row[kParts * kWidth];
  for (int q = 0; q < kRows; ++q) {
    R* const to = out + kParts * (i + q) * s.out_row;
    if (kParts == 1 && s.out_col == 1 && s.n == kColumns) {
      for (int v = 0; v < kVectors; ++v) hn::StoreU(re[q][v], d, to + v * kLanes);
      continue;
    }
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(re[q][v], d, row + v * kLanes);
      if constexpr (kParts == 2) hn::Store(im[q][v], d, row + kWidth + v * kLanes);
    }
    for (index_t j = 0; j < s.n; ++j) {
      R* const at = to + kParts * j * s.out_col;
      if constexpr (kParts == 1) {
        at[0] = row[j];
      } else {
        at[0] = row[2 * j] - row[kWidth + 2 * j + 1];
        at[1] = row[2 * j + 1] + row[kWidth + 2 * j];
      }
    }
  }
}

template <class R, int kParts, int kColumns>
void small_product(const SmallProduct& s, const std::byte* a_bytes, const std::byte* b_bytes,
                   std::byte* out_bytes) {
  constexpr int kWidth = kParts * kColumns;
  const auto* a = reinterpret_cast<const R*>(a_bytes);
  const auto* b = reinterpret_cast<const R*>(b_bytes);
  auto* out = reinterpret_cast<R*>(out_bytes);
  HWY_ALIGN R packed[kMostOfSmallProduct * kWidth];
  index_t step = kParts * s.b_row;
  if (s.b_col != 1 || s.n != kColumns || (kParts == 2 && s.conj_b)) {
    pack_rows<R, kParts, kColumns>(s, b, packed);
    b = packed;
    step = kWidth;
  }
  // Independent sums of several rows avoid waiting, and a row of b is read once for all of them.
  // They take half of the registers.
  constexpr index_t kSums = HWY_TARGET == HWY_AVX3 ? 16 : 8;
  constexpr auto kLanes = static_cast<index_t>(hn::MaxLanes(hn::CappedTag<R, kWidth>()));
  constexpr index_t kRows = std::clamp<index_t>(kSums * kLanes / (kParts * kWidth), 1, 4);
  index_t i = 0;
  for (; i + kRows <= s.m; i += kRows) {
    product_rows<R, kParts, kColumns, kRows>(s, a, b, step, out, i);
  }
  for (; i < s.m; ++i) product_rows<R, kParts, kColumns, 1>(s, a, b, step, out, i);
}

template <class R, int kParts>
SmallProductLoop loop_for(index_t n) {
  if (n <= 1) return small_product<R, kParts, 1>;
  if (n <= 2) return small_product<R, kParts, 2>;
  if (n <= 4) return small_product<R, kParts, 4>;
  return n <= 8 ? small_product<R, kParts, 8> : small_product<R, kParts, 16>;
}

}  // namespace

SmallProductLoop small_loop(DType dtype, index_t n) {
  switch (dtype) {
    case DType::float32:
      return loop_for<float, 1>(n);
    case DType::float64:
      return loop_for<double, 1>(n);
    case DType::complex64:
      return loop_for<float, 2>(n);
    default:
      return loop_for<double, 2>(n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(small_loop);

SmallProductLoop small_product_loop(SmallProduct& product, bool& exchanged, DType dtype) {
  // The loops are fast if rows of the second factor are dense and longer than one element.
  const bool is_good = product.b_col == 1 && product.n > 1;
  exchanged = !is_good && (product.a_row == 1 || product.n < product.m) && product.m > 1;
  if (exchanged) {
    std::swap(product.m, product.n);
    std::swap(product.a_row, product.b_col);
    std::swap(product.a_col, product.b_row);
    std::swap(product.out_row, product.out_col);
    std::swap(product.conj_a, product.conj_b);
  }
  return HWY_DYNAMIC_DISPATCH(small_loop)(dtype, product.n);
}

}  // namespace palimpsest
#endif
