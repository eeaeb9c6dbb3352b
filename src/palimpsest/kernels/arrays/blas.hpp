// SPDX-License-Identifier: Apache-2.0
// Internal: the only place that calls CBLAS is blas.cpp.
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

/// What a product is multiplied by, and what is there already; numbers of the dtype, null for 1 and
/// for 0. Where `beta` is 0 nothing is read from the destination.
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

/// Name and version of the library that multiplies.
std::string blas_library_version();

}  // namespace palimpsest
