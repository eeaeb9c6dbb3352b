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

/// Sets the size in bytes from which run_copy and run_elementwise write results past the caches; 0:
/// the machine's default. For tests: results do not depend on it.
void stream_from(index_t bytes);

}  // namespace palimpsest
