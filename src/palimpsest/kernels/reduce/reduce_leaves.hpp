// SPDX-License-Identifier: Apache-2.0
// Internal: the inner loops of reductions.
#pragma once

#include <cstddef>

#include "palimpsest/kernels/reduce/reduce.hpp"

namespace palimpsest {

/// Longest run of elements, and largest number of rows, that are accumulated without pairing.
inline constexpr index_t kLeafElements = 256;
inline constexpr int kLeafRows = 16;
inline constexpr int kMostRuns = 16;
/// Rows that are read side by side where their sums go on: fewer would load and store these more
/// often than memory is read.
inline constexpr int kRowsAtOnce = 8;
/// Effect of rows on accumulators. first: begin them. streamed: begin them with stores past the
/// caches, where one pass is enough. onto: continue them.
enum class Rows { first, streamed, onto };

/// One kind of reduction of one or two operands: f(x) or f(a, b) per element, then a commutative
/// `combine`. Elements are dense and of dtype `load`, accumulators of dtype `accumulate`.
struct ReduceLeaf {
  int n_operands = 1;
  DType load, accumulate;
  /// result = the reduction of 1 <= n <= kLeafElements elements.
  void (*horizontal)(const std::byte* const* x, index_t n, std::byte* result) = nullptr;
  /// accumulators[j] = accumulators[j], unless the rows are the first, combined with f(x[j]) of 1
  /// to kLeafRows rows, one after the other: the operands of the first row, then those of the
  /// second, and so on.
  void (*vertical)(const std::byte* const* x, int rows, std::byte* accumulators, index_t n,
                   Rows how) = nullptr;
  /// The same bits as `vertical` where one operand is a single number for each row: the first one
  /// (number_first) or the second one. Null: there is no such loop.
  using Vertical = void (*)(const std::byte* const* x, int rows, std::byte* accumulators, index_t n,
                            Rows how);
  Vertical number_first = nullptr, number_second = nullptr;
  /// accumulators[j] = accumulators[j] combined with x[j].
  void (*combine)(const std::byte* x, std::byte* accumulators, index_t n) = nullptr;
  /// The same bits as `horizontal` for each of n neighbouring runs of kLeafElements elements, n a
  /// power of two up to kMostRuns, and `combine` for pairs of results until there is one. Null:
  /// there is no such loop. `far`: the operands are hardly in any cache.
  void (*runs)(const std::byte* const* x, int n, std::byte* result, bool far) = nullptr;
};

// The `runs` of leaves of sums; null without vector instructions.
using Runs = void (*)(const std::byte* const* x, int n, std::byte* result, bool far);
Runs runs_of_sum(DType dtype);
Runs runs_of_product(DType dtype, bool conj_a, bool conj_b);
Runs runs_of_norm2(DType load);
// The same bits as the plain `horizontal`, runs of it, and the place of the first of n elements
// that is equal to another one or not a number, n if none is.
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
// Sums of products of complex numbers, each product and each sum rounded; null where there are no
// vectors.
struct ComplexProductLoops {
  void (*horizontal)(const std::byte* const* x, index_t n, std::byte* result) = nullptr;
  RowsOfSum vertical = nullptr;
};
ComplexProductLoops complex_product_loops(DType dtype, bool conj_a, bool conj_b);
// The sum of products of rows, each with a number; not for conjugates of both.
RowsOfSum rows_of_product(DType dtype, bool conj_a, bool number_first);

/// `dtype` is that of the result; a bool sum is `any`, a bool product `all`.
ReduceLeaf reduce_leaf(ReduceOp op, DType dtype);
/// a * b, each conjugated if asked for; float32, float64, complex64, complex128, int64.
ReduceLeaf product_leaf(DType dtype, bool conj_a, bool conj_b);
/// |x|^2 of elements of dtype `load`, accumulated in its real type.
ReduceLeaf norm2_leaf(DType load);

}  // namespace palimpsest
