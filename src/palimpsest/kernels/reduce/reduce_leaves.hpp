// SPDX-License-Identifier: Apache-2.0
// Internal: the inner loops of reductions.
#pragma once

#include <cstddef>

#include "palimpsest/kernels/reduce/reduce.hpp"

namespace palimpsest {

/// Maximum run length and number of rows that are accumulated without pairing.
inline constexpr index_t kLeafElements = 256;
inline constexpr int kLeafRows = 16;
inline constexpr int kMostRuns = 16;
/// Rows per pass over accumulators. With fewer rows, loads and stores of accumulators would exceed
/// those of operands.
inline constexpr int kRowsAtOnce = 8;
/// Effect of rows on the accumulators. first: initialize; streamed: initialize by stores past the
/// caches, for a single pass; onto: continue.
enum class Rows { first, streamed, onto };

/// A kind of reduction of one or two operands: f(x) or f(a, b) per element, then a commutative
/// `combine`. Elements are dense and of dtype `load`, accumulators of dtype `accumulate`.
struct ReduceLeaf {
  int n_operands = 1;
  DType load, accumulate;
  /// result = the reduction of 1 <= n <= kLeafElements elements.
  void (*horizontal)(const std::byte* const* x, index_t n, std::byte* result) = nullptr;
  /// accumulators[j] combined with f(x[j]) of 1 to kLeafRows rows in order, or initialized by the
  /// first row. x holds the operands of the first row, then those of the second, and so on.
  void (*vertical)(const std::byte* const* x, int rows, std::byte* accumulators, index_t n,
                   Rows how) = nullptr;
  /// The same bits as `vertical` where one operand is a single number per row: the first one
  /// (number_first) or the second one. Null: not available.
  using Vertical = void (*)(const std::byte* const* x, int rows, std::byte* accumulators, index_t n,
                            Rows how);
  Vertical number_first = nullptr, number_second = nullptr;
  /// accumulators[j] = accumulators[j] combined with x[j].
  void (*combine)(const std::byte* x, std::byte* accumulators, index_t n) = nullptr;
  /// The same bits as `horizontal` for each of n neighbouring runs of kLeafElements elements, n a
  /// power of two up to kMostRuns, then `combine` in pairs down to one result. Null: not available.
  /// `far`: the operands are mostly not in cache.
  void (*runs)(const std::byte* const* x, int n, std::byte* result, bool far) = nullptr;
};

// The `runs` of leaves of sums; null without vector instructions.
using Runs = void (*)(const std::byte* const* x, int n, std::byte* result, bool far);
Runs runs_of_sum(DType dtype);
Runs runs_of_product(DType dtype, bool conj_a, bool conj_b);
Runs runs_of_norm2(DType load);
// The same bits as the plain `horizontal`, its runs, and the index of the first of n elements that
// equals a given value or is NaN; n if there is none.
struct ExtremumLoops {
  void (*horizontal)(const std::byte* const* x, index_t n, std::byte* result) = nullptr;
  Runs runs = nullptr;
  index_t (*find)(const std::byte* x, index_t n, const std::byte* wanted) = nullptr;
};
ExtremumLoops extremum_loops(DType dtype, bool is_max);
// The same bits as the plain `vertical`.
using RowsOfSum = void (*)(const std::byte* const* x, int rows, std::byte* accumulators, index_t n,
                           Rows how);
RowsOfSum rows_of_sum(DType dtype);
// Sums of products of complex numbers; each product and each sum is rounded. Null without vector
// instructions.
struct ComplexProductLoops {
  void (*horizontal)(const std::byte* const* x, index_t n, std::byte* result) = nullptr;
  RowsOfSum vertical = nullptr;
};
ComplexProductLoops complex_product_loops(DType dtype, bool conj_a, bool conj_b);
// The sum of rows, each multiplied by a number. Not available with both conjugated.
RowsOfSum rows_of_product(DType dtype, bool conj_a, bool number_first);

/// `dtype` is that of the result; a bool sum is `any`, a bool product `all`.
ReduceLeaf reduce_leaf(ReduceOp op, DType dtype);
/// a * b, each conjugated if asked for; float32, float64, complex64, complex128, int64.
ReduceLeaf product_leaf(DType dtype, bool conj_a, bool conj_b);
/// |x|^2 of elements of dtype `load`, accumulated in its real type.
ReduceLeaf norm2_leaf(DType load);

}  // namespace palimpsest
