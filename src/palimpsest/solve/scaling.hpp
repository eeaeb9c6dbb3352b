// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <complex>
#include <span>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

// Solvers work on b * 2^e, so that no sum of squares leaves the range of the dtype, for any unit of
// b. Powers of two change no digit: results are those of b, times 2^e.

/// The largest |real or imaginary part|; NaN where there is one; 0 without values.
///
/// DTypes   float32, float64, complex64, complex128; any strides
double largest_part(const Tensor& x);
double largest_part(std::span<const std::complex<float>> x);

/// |x|, Euclidean, without overflow or underflow on the way. `largest`: its largest part.
double safe_norm(const Tensor& x, double largest);

/// The power of two by which b is multiplied: 0 unless `largest`, its largest part, is far from 1.
/// It also keeps a start x0 in range, with the largest part `start`; 0 without one. `dtype`: of b.
int scale_exponent(double largest, double start, DType dtype);

/// x *= 2^exponent, in place. False if a value left the range of the dtype.
///
/// DTypes   those of largest_part(); any strides
bool multiply_by_power_of_two(Tensor& x, int exponent);

}  // namespace palimpsest
