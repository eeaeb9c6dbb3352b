// SPDX-License-Identifier: Apache-2.0
// Internal: the interface to LAPACK, in double precision.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// A = V diag(values) V^H for a Hermitian matrix of n rows, row-major. Reads the elements on and
/// above the diagonal. Values ascend; row k of the matrix becomes vector k.
///
/// Errors   InternalError: elements that are not finite
/// Aliases  the matrix is overwritten; work holds hermitian_eigen_work<T>(n) bytes, aligned for T
/// Cost     O(n^3), by divide and conquer (dsyevd, zheevd)
template <class T>
void hermitian_eigen(index_t n, T* matrix, double* values, std::span<std::byte> work);
template <class T>
std::size_t hermitian_eigen_work(index_t n);

/// A = U diag(s) Vh for a row-major matrix: s descends; U is rows x k, Vh k x columns with k the
/// smaller side, both row-major.
///
/// Errors   InternalError: elements that are not finite, no convergence, or a side above 2^31 - 1
/// Aliases  the matrix is overwritten; work holds singular_values_work<T>(rows, columns) bytes,
///          aligned for T
/// Cost     O(rows columns k), by divide and conquer (dgesdd, zgesdd)
template <class T>
void singular_values(index_t rows, index_t columns, T* matrix, T* u, double* s, T* vh,
                     std::span<std::byte> work);
template <class T>
std::size_t singular_values_work(index_t rows, index_t columns);

/// C = A^H A of a row-major matrix of `rows` rows of n elements, added to the elements on and above
/// the diagonal of C, which has n rows.
template <class T>
void add_gram(index_t rows, index_t n, const T* a, T* c);
/// out = A P, row-major: rows x n times n x n.
template <class T>
void times(index_t rows, index_t n, const T* a, const T* p, T* out);

}  // namespace palimpsest
