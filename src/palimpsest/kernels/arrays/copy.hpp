// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// Copies like strided_copy, on the threads of the pool.
///
/// Shapes   x has the extents of out; broadcasts have stride 0 already
/// Aliases  x and out are disjoint, or identical
/// Cost     one pass over memory
void run_copy(const ConstView& x, const MutableView& out);

}  // namespace palimpsest
