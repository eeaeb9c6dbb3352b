// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// A permutation of dimensions; an ellipsis moves as one.
///
/// Math     N is Identity
/// Errors   ShapeError "permutation": oshape has other dimensions, or one twice
/// Cost     none: a view
NamedLinop Permute(Dims ishape, Dims oshape);

}  // namespace palimpsest
