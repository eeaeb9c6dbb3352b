// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// Axes of two operands that are multiplied, summed and kept: the labels of `ij,jk->ik` as small
/// non-negative numbers. No label repeats within one operand. Every label of `out` occurs in a or
/// b. A label that `out` lacks is summed over.
struct Contraction {
  SmallVector<int, 8> a, b, out;
  bool conj_a = false, conj_b = false;
  friend bool operator==(const Contraction&, const Contraction&) = default;
};

/// Bytes that run_contraction needs as scratch, for these extents and strides (data is not read):
/// not zero only where a matrix product is worth packing an operand for.
std::size_t contraction_scratch_bytes(const Contraction& contraction, const ConstView& a,
                                      const ConstView& b, const MutableView& out);

/// out = sum of conj?(a) * conj?(b) over the labels that out lacks.
///
/// Shapes   extents agree wherever labels do; any strides, 0 included for a and b
/// DTypes   one for all three: float32, float64, complex64, complex128, int64
/// Aliases  out is disjoint from a, b and scratch; a and b may overlap
/// Cost     a matrix product (BLAS) where possible, else one strided pass with sums in cache, as
///          accurate as run_reduce; scratch is 64-byte aligned. The result does not depend on the
///          number of threads. With too little scratch always the strided pass
void run_contraction(const Contraction& contraction, const ConstView& a, const ConstView& b,
                     const MutableView& out, std::span<std::byte> scratch = {});

/// Bytes of scratch of run_scaled_product; empty if BLAS does not apply.
std::optional<std::size_t> scaled_product_scratch_bytes(const Contraction& contraction,
                                                        const ConstView& a, const ConstView& b,
                                                        const MutableView& out);

/// out = alpha * contraction + beta * out, where scaled_product_scratch_bytes is not empty. alpha
/// and beta point to numbers of the dtype. Where beta is 0 nothing of out is read.
///
/// Shapes   as run_contraction, floating and complex dtypes
/// Aliases  as run_contraction
void run_scaled_product(const Contraction& contraction, const void* alpha, const ConstView& a,
                        const ConstView& b, const void* beta, const MutableView& out,
                        std::span<std::byte> scratch);

}  // namespace palimpsest
