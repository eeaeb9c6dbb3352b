// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/view.hpp"

namespace PALIMPSEST_API palimpsest {

/// out[i] = x[i], converted to the dtype of out: casts out of range wrap, complex to real keeps the
/// real part, anything to bool is `!= 0`.
///
/// Shapes   x must have the extents of out, or broadcast to them with stride 0 already in place
/// Aliases  x and out are disjoint, or the very same elements
/// Cost     one pass; axes are merged and ordered by the strides of out first
void strided_copy(const ConstView& x, const MutableView& out);

/// out[i] = the element at `value`, which has the dtype of out.
void strided_fill(const void* value, const MutableView& out);

/// Copies and converts n elements along one axis, as strided_copy does; steps in bytes.
using CopyRow = void (*)(const std::byte* x, index_t x_step, std::byte* out, index_t out_step,
                         index_t n);
/// The inner loop of strided_copy between two dtypes, for kernels that work tile by tile.
CopyRow copy_row_between(DType from, DType to);

}  // namespace palimpsest
