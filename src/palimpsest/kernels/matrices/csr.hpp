// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string_view>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// A sparse matrix by rows (CSR): row r has the values number start[r] .. start[r + 1] - 1, in the
/// columns with the same numbers. Columns are int32 or int64, starts int64; any strides.
struct SparseRows {
  ConstView values, column, start;
};

/// y[b.., r] = sum over the values of row r of value x[b.., column].
///
/// Shapes   x (b.., columns), y (b.., rows), any strides
/// DTypes   x and y the same of float32, float64, complex64, complex128; values have that dtype or
///          its real type
/// Errors   ValueError naming `who`: a column or a start out of range; then y is undefined
/// Aliases  y is disjoint from all others
/// Cost     one pass over the matrix for each batch element; rows go to several threads, and the
///          terms of each sum are added in order
void run_sparse_product(const SparseRows& matrix, const ConstView& x, const MutableView& y,
                        std::string_view who);
/// x[b.., c] = sum over the values in column c of conj(value) y[b.., row].
///
/// Cost     as run_sparse_product, but only batch elements go to several threads
void run_sparse_adjoint(const SparseRows& matrix, const ConstView& y, const MutableView& x,
                        std::string_view who);

}  // namespace palimpsest
