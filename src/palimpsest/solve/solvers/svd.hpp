// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of the two solvers for singular values. Their unknown is one array that
// holds the left vectors (o.., k), the right vectors (k, i..), and the values (batch.., k), as
// numbers of the dtype of the vectors.
#pragma once

#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest::svd_parts {

/// k. ValueError "k": not positive, or more than the smaller side of the matrix.
index_t count_of(const Problem& p);
/// Rows and columns of the matrix, for one element of the batch.
index_t rows_of(const Problem& p);
index_t columns_of(const Problem& p);
/// The smaller of them, and the vectors of each basis: those of the smaller side are all there are.
index_t side_of(const Problem& p);
index_t vectors_of(const Problem& p);
/// ValueError "k": not positive.
void check_svd(const Problem& p, std::string_view solver);

/// u (k, o..), s (k, batch..) and vh (k, i..) as one array.
Variable packed(const Problem& p, const Variable& u, const Variable& s, const Variable& vh);

/// The next vector of a basis and its length. Where nothing but rounding is left a random vector
/// takes its place, of length 0, and 0 itself where the basis has all there is. The candidate is
/// orthogonal to the vectors of the basis that count.
struct Next {
  Variable v, length;
};
Next next_vector(const Space& X, const Variable& vectors, const Variable& counts,
                 const Variable& candidate, const Variable& length, const Variable& least,
                 const Variable& key);

/// The table B, column by column, as matrices (batch.., rows, columns) in double precision.
Variable matrices(const Variable& B);
/// The first n triplets of U B V^H, given B as matrices.
struct Triplets {
  Variable u, s, v;  // (n, o..), (n, batch..), (n, i..)
  Variable last;     // of the left vectors of B the entries in its last row, (batch.., n)
};
Triplets triplets(const Problem& p, const Variable& U, const Variable& V, const Variable& B,
                  index_t n);
/// 1 where row and column are one of the first n, (vectors, vectors, 1..).
Variable unit_matrix(const Problem& p, index_t n);

}  // namespace palimpsest::svd_parts
