// SPDX-License-Identifier: Apache-2.0
// Internal: transcendental functions as loops of vectors.
#pragma once

#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"

namespace palimpsest {

/// Returns the loop of a function of float32 or float64; null if this file has none. All
/// instruction sets give the same bits; zeros and their signs, infinities and NaN are as in the C
/// library. Largest errors in units of the last place:
///
///     float32   0.51, but log 0.9; exp, erf, log2, log10, pow 1.1; arcsin, arccos 1.2;
///               arctan, hypot, tanh 1.3; sin 1.4; cos, cosh 1.5; expm1, log1p, arctan2 1.6;
///               sinh 1.7; tan 2.4; sigmoid 2.5
///     float64   exp, erf, log, log2, log10, sin, cos, tan, arcsin, arccos, arctan 1.1; pow 1.2;
///               hypot 1.3; log1p 1.4; expm1, arctan2 1.5; sinh, cosh, arcsinh, arctanh 1.7;
///               tanh 2.6; arccosh, sigmoid 2.4
ScalarKernel exponential_kernel(ScalarOp op, DType working);
ScalarKernel logarithm_kernel(ScalarOp op, DType working);
ScalarKernel trigonometric_kernel(ScalarOp op, DType working);
/// Returns the loop for complex64 or complex128: exp, log, sqrt, abs, angle. Errors of the first
/// three are a few roundings of the larger part; log keeps the digits of both parts. abs errs by up
/// to 1.3 units, angle like arctan2.
ScalarKernel complex_vector_kernel(ScalarOp op, DType working);

}  // namespace palimpsest
