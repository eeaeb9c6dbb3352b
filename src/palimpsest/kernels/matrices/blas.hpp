// SPDX-License-Identifier: Apache-2.0
// Internal: the interface to CBLAS. Only blas.cpp calls it.
#pragma once

#include <string>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// A matrix in memory: row-major with rows `leading` elements apart, unless `transposed`.
struct GemmFactor {
  const void* data = nullptr;
  index_t leading = 1;
  bool transposed = false, conjugated = false;
};

/// Factors of a product and of its destination: numbers of the dtype. Null means 1 for `alpha` and
/// 0 for `beta`. With `beta` 0 the destination is not read.
struct GemmScale {
  const void* alpha = nullptr;
  const void* beta = nullptr;
};

/// out (m, n), row-major with rows `leading` apart, = alpha a (m, k) times b (k, n) + beta out, on
/// one thread.
///
/// DTypes   float32, float64, complex64, complex128
/// Shapes   all numbers fit an int
void gemm(DType dtype, index_t m, index_t n, index_t k, const GemmFactor& a, const GemmFactor& b,
          void* out, index_t leading, const GemmScale& scale = {});

/// Name and version of the library that multiplies, its kernels, who chose them, and whether their
/// products are right.
std::string blas_library_version();

}  // namespace palimpsest
