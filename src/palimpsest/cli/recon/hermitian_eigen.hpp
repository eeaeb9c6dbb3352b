// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

namespace palimpsest::cli {

/// V diag(values) V^H = A; values ascend, vector k is vectors[k * n], ..., vectors[k * n + n - 1].
struct HermitianEigen {
  std::vector<double> values;
  std::vector<std::complex<double>> vectors;
};

/// Eigenvalues and orthonormal eigenvectors of a Hermitian matrix, row-major, of n rows.
///
/// Errors   InternalError: elements that are not finite
/// Cost     O(n^3): reduction to a tridiagonal matrix by reflections, then implicit QR steps
/// Source   Golub & Van Loan, Matrix Computations, 4th ed., sections 8.3.1 to 8.3.5
HermitianEigen hermitian_eigen(std::vector<std::complex<double>> matrix, std::size_t n);
/// Bytes that it holds at most, matrix and result included.
constexpr std::size_t hermitian_eigen_bytes(std::size_t n) { return 40 * n * n; }

}  // namespace palimpsest::cli
