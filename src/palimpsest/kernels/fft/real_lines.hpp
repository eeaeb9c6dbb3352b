// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of lines of real numbers.
#pragma once

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// Maximum line length of real_to_half and half_to_real.
inline constexpr index_t kLongestRealLine = 8192;
/// Can they transform lines of n elements?
inline bool is_real_line(index_t n) { return n >= 2 && n % 2 == 0 && n <= kLongestRealLine; }

/// Loops over one line between the spectrum of n/2 complex numbers and that of n real ones, and
/// back. Arguments: n/2, the line, real and imaginary parts of the table, the scale, the result.
template <class T>
struct SpectrumLoops {
  using Loop = void (*)(index_t, const T*, const T*, const T*, T, T*);
  Loop apart, together;
};

/// y[k] = scale sum_j x[j] exp(-2 pi i j k / n) for k = 0 .. n/2, along one axis of a real array.
///
/// A line is transformed as n/2 complex numbers from elements 2j and 2j + 1. The spectra of even
/// and odd elements are then separated and combined.
///
/// Shapes   x has n elements along the axis, is_real_line(n), and y n/2 + 1
/// DTypes   float32 and complex64, float64 and complex128
/// Aliases  x and y are disjoint
/// Cost     half of a complex transform; threads share the lines. Results depend on no other line,
///          nor on strides or threads
void real_to_half(const ConstView& x, const MutableView& y, std::size_t axis, double scale);

/// x[j] = scale sum_k y[k] exp(2 pi i j k / n) over all n elements of the spectrum of a real line,
/// of which y holds the first n/2 + 1. Imaginary parts of y[0] and y[n/2] are ignored.
///
/// As real_to_half otherwise.
void half_to_real(const ConstView& y, const MutableView& x, std::size_t axis, double scale);

}  // namespace palimpsest
