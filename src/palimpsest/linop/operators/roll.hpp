// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// A periodic shift along some dimensions. N is Identity, the adjoint the inverse.
///
/// Math     y[n] = x[(n - s) mod N] along each of `over`, with its own s of `shifts`
/// Errors   ShapeError: no such dimension; ValueError "shifts": not one for each of `over`
/// Cost     one pass
NamedLinop Roll(Dims dims, Dims over, Extents shifts);

}  // namespace palimpsest
