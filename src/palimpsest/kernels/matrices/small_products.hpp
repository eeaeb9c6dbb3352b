// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Maximum number of rows, columns and terms of a product that is computed here: a library call
/// takes longer, and may wait for its lock.
inline constexpr index_t kMostOfSmallProduct = 16;

/// out[i, j] = sum over p of a[i, p] b[p, j], in the order of p; strides in elements.
struct SmallProduct {
  index_t m = 1, n = 1, k = 1;
  index_t a_row = 1, a_col = 1, b_row = 1, b_col = 1, out_row = 1, out_col = 1;
  bool conj_a = false, conj_b = false;
};

/// Computes one product of a and b; out is disjoint.
using SmallProductLoop = void (*)(const SmallProduct& product, const std::byte* a,
                                  const std::byte* b, std::byte* out);

/// Selects the loop for these products. It may exchange the factors to vectorize along rows.
/// float32, float64, complex64, complex128. All instruction sets give the same bits.
SmallProductLoop small_product_loop(SmallProduct& product, bool& exchanged, DType dtype);

}  // namespace palimpsest
