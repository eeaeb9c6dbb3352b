// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// A view of the elements of x, in row-major order, at any offset and strides, which may overlap.
/// All are counted in elements of `dtype`, as which the bytes are read; default: that of x.
///
/// Aliases  a view where x lies densely, else a copy. Nothing overwrites one that overlaps itself
/// Errors   ShapeError: it reaches outside; x of unknown extents; numbers of axes that differ
/// Cost     none; the derivative sums what lies at one address. Bytes that are read as another kind
///          of number have none, but complex numbers and pairs of real ones have
Variable as_strided(const Variable& x, Extents extents, Strides strides, index_t offset,
                    std::optional<DType> dtype = {});

}  // namespace ops
}  // namespace palimpsest
