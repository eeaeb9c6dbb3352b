// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Renames dimension by dimension; values are unchanged.
///
/// Math     y = x; N is Identity, A^H inner A is inner with the names of ishape
/// Errors   ShapeError "not compatible": two shapes of different structure
/// Cost     none
NamedLinop ShapeSpec(Dims ishape, Dims oshape);

}  // namespace palimpsest
