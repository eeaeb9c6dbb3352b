// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/variable.hpp"

namespace palimpsest::ops {

/// An array of known extents with every element equal to the 0-d value.
Variable full(Extents shape, const Variable& value);
Variable zeros(Extents shape, DType dtype, Device device = {});
/// Zeros with the type and the extents of x, known or not.
Variable zeros_like(const Variable& x);

}  // namespace palimpsest::ops
