// SPDX-License-Identifier: Apache-2.0
// Internal: what the two solvers for singular values share. Their unknown is one array that holds
// the left vectors (o.., k), the right vectors (k, i..), and the values (batch.., k), as numbers of
// the dtype of the vectors.
#pragma once

#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest::svd_parts {

/// k. ValueError "k": not positive, or more than the smaller side of the matrix.
index_t count_of(const Problem& p);
/// Rows and columns of the matrix, for one element of the batch.
index_t rows_of(const Problem& p);
index_t columns_of(const Problem& p);
/// ValueError "k": not positive.
void check(const Problem& p, std::string_view solver);

/// u (k, o..), s (k, batch..) and vh (k, i..) as one array.
Variable packed(const Problem& p, const Variable& u, const Variable& s, const Variable& vh);

}  // namespace palimpsest::svd_parts
