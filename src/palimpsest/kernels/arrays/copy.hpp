// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// strided_copy on the threads of the pool.
///
/// Shapes   x has the extents of out, or broadcasts to them with stride 0 already in place
/// Aliases  x and out are disjoint, or the very same elements
/// Cost     one pass over memory
void run_copy(const ConstView& x, const MutableView& out);

/// Sets the size in bytes from which results are written past the caches, by this and by
/// run_elementwise; 0: the machine's default. For tests: results do not depend on it.
void stream_from(index_t bytes);

}  // namespace palimpsest
