// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <span>

#include "palimpsest/kernels/reduce/reduce.hpp"

namespace palimpsest {

/// Position of the maximum or minimum over `axes` (sorted, counted from the front): the first such
/// position, counted row-major over the reduced axes.
///
/// Math     the first NaN counts as the extremum
/// Shapes   out has x's extents without `axes`, in order; no reduced axis is empty
/// DTypes   x not complex; out int64. `op` is max or min
/// Aliases  disjoint
/// Cost     one pass; threads over the outputs
void run_arg_reduce(ReduceOp op, const ConstView& x, std::span<const index_t> axes,
                    const MutableView& out);

}  // namespace palimpsest
