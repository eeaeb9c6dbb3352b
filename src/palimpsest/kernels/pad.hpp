// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// y = x at offset `before` per axis, and the element at `value`, which has y's dtype, around it.
///
/// Shapes   before + extents of x <= extents of y, per axis
/// Aliases  disjoint
/// Cost     every element of y is written once
void run_pad(const ConstView& x, std::span<const index_t> before, const void* value,
             const MutableView& y);

}  // namespace palimpsest
