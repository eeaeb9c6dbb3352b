// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <span>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// y[i] = x[i - shifts] modulo the extents, along all axes at once.
///
/// Shapes   x, y: equal; one shift for each axis, 0 <= shift < extent where there are elements
/// DTypes   x, y: equal
/// Aliases  disjoint
/// Cost     one pass over memory, on the threads of the pool
void run_roll(const ConstView& x, std::span<const index_t> shifts, const MutableView& y);

}  // namespace palimpsest
