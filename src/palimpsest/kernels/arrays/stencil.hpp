// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/view.hpp"

namespace PALIMPSEST_API palimpsest {

/// Values of an array beyond its ends.
enum class StencilEdge : std::uint8_t {
  periodic,  // the array repeats
  nearest,   // the first and the last element
  zero,
  nearest_then_zero,  // the first element before the array, zeros behind it
  zero_then_nearest,
};

/// A filter with real taps t along one axis that keeps every step-th result.
struct Stencil {
  std::size_t axis = 0;
  std::vector<double> taps;
  index_t offset = 0;
  index_t step = 1;
  StencilEdge edge = StencilEdge::periodic;
  friend bool operator==(const Stencil&, const Stencil&) = default;
};

/// y[i] = sum_m t[m] x[step i + offset + start + m] along the axis. A start other than 0 takes
/// periodic edges.
///
/// Shapes   along the axis x has step times the elements of y; else equal
/// DTypes   float32, float64, complex64, complex128; both the same
/// Aliases  disjoint
/// Cost     one read per tap, in cache
void run_stencil(const Stencil& stencil, const ConstView& x, const MutableView& y,
                 index_t start = 0);
/// The adjoint: x[j] = sum of t[m] y[i] over all i, m that read j.
void run_stencil_adjoint(const Stencil& stencil, const ConstView& y, const MutableView& x,
                         index_t start = 0);

}  // namespace palimpsest
