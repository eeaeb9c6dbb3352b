// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct SparseOptions {
  Dims in = "N", out = "M";
  Dims batch = "...";
};
/// A sparse matrix in compressed rows: row r has values[row_start[r] .. row_start[r + 1] - 1] in
/// the columns of the same places of column_index.
///
/// Math     y[b, r] = sum of values[j] x[b, column_index[j]], in the order of j
/// DTypes   column_index int32 and int64 are used as they come, other integers are converted
/// Errors   ValueError "range": a column outside 0..columns-1; "row_start": not ascending from 0 to
///          the number of values; DTypeError: indices that are not integers
/// Cost     number of values per batch entry
NamedLinop Sparse(Parameter values, const Tensor& column_index, const Tensor& row_start,
                  index_t columns, SparseOptions options = {});

}  // namespace palimpsest
