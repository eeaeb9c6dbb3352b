// SPDX-License-Identifier: Apache-2.0
// Internal: the inner loops of reductions.
#pragma once

#include <cstddef>

#include "palimpsest/kernels/reduce.hpp"

namespace palimpsest {

/// Longest run of elements, and largest number of rows, that are accumulated without pairing.
inline constexpr index_t kLeafElements = 256, kLeafRows = 16;
inline constexpr int kMostRuns = 16;
/// Rows that are read side by side: fewer would load and store the sums more often than memory is read.
inline constexpr index_t kRowsAtOnce = 8;

/// One kind of reduction of one or two operands: f(x) or f(a, b) per element, then a commutative
/// `combine`. Elements are dense and of dtype `load`, accumulators of dtype `accumulate`.
struct ReduceLeaf {
  int n_operands = 1;
  DType load, accumulate;
  /// result = the reduction of 1 <= n <= kLeafElements elements.
  void (*horizontal)(const std::byte* const* x, index_t n, std::byte* result) = nullptr;
  /// accumulators[j] = (first ? nothing : accumulators[j]) combined with f(x[j]).
  void (*vertical)(const std::byte* const* x, std::byte* accumulators, index_t n,
                   bool first) = nullptr;
  /// The same with kRowsAtOnce rows, one after the other: the operands of the first row, then those
  /// of the second, and so on.
  void (*vertical_rows)(const std::byte* const* x, std::byte* accumulators, index_t n,
                        bool first) = nullptr;
  /// accumulators[j] = accumulators[j] combined with x[j].
  void (*combine)(const std::byte* x, std::byte* accumulators, index_t n) = nullptr;
  /// The same bits as `horizontal` for each of n neighbouring runs of kLeafElements elements, n a power
  /// of two up to kMostRuns, and `combine` for pairs of results until there is one. Null: there is no
  /// such loop. `far`: the operands are hardly in any cache.
  void (*runs)(const std::byte* const* x, int n, std::byte* result, bool far) = nullptr;
};

// What leaves of sums have for `runs`; null where there are no vectors.
using Runs = void (*)(const std::byte* const* x, int n, std::byte* result, bool far);
Runs runs_of_sum(DType dtype);
Runs runs_of_product(DType dtype, bool conj_a, bool conj_b);
Runs runs_of_norm2(DType load);
// The same bits as `vertical_rows`.
using RowsOfSum = void (*)(const std::byte* const* x, std::byte* accumulators, index_t n,
                           bool first);
RowsOfSum rows_of_sum(DType dtype);

/// `dtype` is that of the result; a bool sum is `any`, a bool product `all`.
ReduceLeaf reduce_leaf(ReduceOp op, DType dtype);
/// a * b, each conjugated if asked for; float32, float64, complex64, complex128, int64.
ReduceLeaf product_leaf(DType dtype, bool conj_a, bool conj_b);
/// |x|^2 of elements of dtype `load`, accumulated in its real type.
ReduceLeaf norm2_leaf(DType load);

}  // namespace palimpsest
