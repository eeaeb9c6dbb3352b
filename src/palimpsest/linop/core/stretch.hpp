// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/variable.hpp"
#include "palimpsest/named/dims.hpp"

// Summing over axes and repeating along them: each other's adjoint. Axes are those of the longer
// array, counted as in axes.hpp.
namespace palimpsest {

Variable summed(const Variable& x, const Axes& axes);
Variable repeated(const Variable& x, const Axes& axes, const Extents& counts);
/// The axes of `longer` that `shorter` lacks, when without them the two are the same; else none.
Axes extra_axes(const Dims& longer, const Dims& shorter);

}  // namespace palimpsest
