// SPDX-License-Identifier: Apache-2.0
// Internal: many vectors of a space in one array, counted by its first axis, and their
// coefficients. These have the axes of the batch last, so that numbers broadcast against them.
#pragma once

#include "palimpsest/solve/frame/problem.hpp"

namespace palimpsest::basis {

/// The space of `count` vectors of X in one array: (count, x..).
Space vectors(const Problem& p, const Space& X, index_t count);
/// The space of arrays (extents.., batch..).
Space table(const Problem& p, DType dtype, Extents extents);

/// <V_i, w> for all i: (count, batch..).
Variable products(const Space& X, const Variable& V, const Variable& w);
/// The sum over i of c_i V_i; c is (count, batch..).
Variable combination(const Space& X, const Variable& V, const Variable& c);
/// The sums over i of c_ij V_i for all j: (n, x..); c is (count, n, batch..).
Variable combinations(const Space& X, const Variable& V, const Variable& c);

/// w less its part in the vectors of V that count, taken out twice, and the coefficients of that
/// part; counts is 1 for these vectors, else 0.
struct Orthogonal {
  Variable next, column;
};
Orthogonal orthogonal(const Space& X, const Variable& V, const Variable& counts, const Variable& w);

/// z of |b e_1 - H z| = min for a Hessenberg matrix H, a row for each of its columns, with the left
/// null vector y: rows 1 .. k of it are a triangle T, and T z = factor y_1..k, with factor =
/// -b / |y|^2.
Variable least_squares(const Problem& p, const Variable& H, const Variable& null,
                       const Variable& factor);

/// 1 at position `at`, else 0: (n, 1..), with as many axes as a table of one extent has.
Variable unit_vector(const Problem& p, const Variable& at, index_t n, DType dtype);
/// 1 at the positions up to `at`, else 0, of the same shape.
Variable first_rows(const Problem& p, const Variable& at, index_t n, DType dtype);

/// The vectors as rows of matrices: (batch.., count, elements of a vector).
Variable as_rows(const Space& X, const Variable& V);
/// The inverse.
Variable from_rows(const Space& X, const Variable& rows);

}  // namespace palimpsest::basis
