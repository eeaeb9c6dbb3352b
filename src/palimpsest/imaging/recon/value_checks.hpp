// SPDX-License-Identifier: Apache-2.0
// Internal: passes over all values of an array of any strides, in vectors, on the threads of the
// config.
#pragma once

#include <cmath>

#include "palimpsest/solve/scaling.hpp"

namespace palimpsest {

/// True if no value is NaN or infinite.
///
/// DTypes   float32, float64, complex64, complex128
inline bool all_finite(const Tensor& x) { return std::isfinite(largest_part(x)); }

/// Index of an element of a dense array.
Extents index_of(index_t element, const Extents& shape);

/// The number of NaN and infinite values, and the first of them, as an element of a dense array.
struct NotFinite {
  index_t count = 0, first = 0;
};
/// DTypes   all of numbers
NotFinite count_not_finite(const Tensor& x);

/// DTypes   as all_finite()
/// Errors   ValueError "[who] what holds NaN or infinite values" with their number and the index of
///          the first
void expect_finite(const char* who, const char* what, const Tensor& x);

/// found |= x != 0.
///
/// Shapes   those of x and found are the same
/// DTypes   found: bool
void add_nonzero(const ConstView& x, Tensor& found);

}  // namespace palimpsest
