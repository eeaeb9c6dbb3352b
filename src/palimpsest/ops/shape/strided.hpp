// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// A view of the elements of x, in row-major order, at any offset and strides; the elements may
/// overlap. Offset and strides count elements of `dtype`, the type of the result; default: that of
/// x.
///
/// Aliases  a view if x is dense, else a copy. A view that overlaps itself is never overwritten
/// Errors   ShapeError: it reaches outside; x of unknown extents; numbers of axes that differ
/// Cost     none; the derivative sums the elements at one address. Bytes read as another kind of
///          number have no derivative, except complex numbers as pairs of real ones and back
Variable as_strided(const Variable& x, Extents extents, Strides strides, index_t offset,
                    std::optional<DType> dtype = {});

}  // namespace ops
}  // namespace palimpsest
