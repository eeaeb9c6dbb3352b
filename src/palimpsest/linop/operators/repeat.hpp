// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Repeats along new dimensions, {dimension, number} each; the adjoint sums.
///
/// Math     N multiplies by the product of the numbers
/// Errors   ShapeError "longer": oshape is not ishape with these dimensions; ValueError "size"
/// Cost     a view: reads with stride 0
NamedLinop Repeat(std::vector<std::pair<ND, index_t>> repeats, Dims ishape, Dims oshape);

}  // namespace palimpsest
