// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// out[i] = x[i], converted to the dtype of out: casts out of range wrap, complex to real keeps the
/// real part, anything to bool is `!= 0`.
///
/// Shapes   x must have the extents of out, or broadcast to them with stride 0 already in place
/// Aliases  x and out are disjoint, or the very same elements
/// Cost     one pass; axes are merged and ordered by the strides of out first
void strided_copy(const ConstView& x, const MutableView& out);

/// out[i] = the element at `value`, which has the dtype of out.
void strided_fill(const void* value, const MutableView& out);

}  // namespace palimpsest
