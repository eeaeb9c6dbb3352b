// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/kernels/reduce/reduce.hpp"

namespace palimpsest {

/// out[i] = x[0] + ... + x[i] along an axis, or the product.
///
/// Shapes   x and out have the same extents; any strides
/// DTypes   x is converted to out's dtype first; `op` is sum or prod; integers wrap, bools `or` and
///          `and`
/// Aliases  out is x (same strides, same dtype), or disjoint
/// Cost     one pass in the order of the axis; threads over the lines
void run_scan(ReduceOp op, const ConstView& x, std::size_t axis, const MutableView& out);

}  // namespace palimpsest
