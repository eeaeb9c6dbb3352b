// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <span>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// y[b, m, p] = x[b, m stride + p]: blocks of the last D axes of x, D = number of strides.
///
/// Shapes   x (b.., n_1..n_D); y (b.., m_1..m_D, p_1..p_D) with (m - 1) stride + p <= n per axis
/// Aliases  disjoint
/// Cost     one write of y
void run_array_to_blocks(const ConstView& x, std::span<const index_t> stride, const MutableView& y);

/// Its adjoint: x[b, n] = sum over m, p with m stride + p = n of y[b, m, p], in increasing order of
/// m; 0 without such m, p.
///
/// DTypes   float32, float64, complex64, complex128
/// Aliases  disjoint
/// Cost     one read of y; every line of x along its last axis is summed by one thread
void run_blocks_to_array(const ConstView& y, std::span<const index_t> stride, const MutableView& x);

}  // namespace palimpsest
