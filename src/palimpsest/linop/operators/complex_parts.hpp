// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

// Linear over the real numbers only: adjoints are those for Re<,>. An operator that contains one of
// these is R-linear too.
namespace PALIMPSEST_API palimpsest {

/// The real part of complex data.
///
/// Math     y = Re x; the adjoint embeds: y -> Re y + 0 i
/// DTypes   complex -> real; real data stay
/// Cost     none: a view
NamedLinop RealPart(Dims dims = "...");
/// The imaginary part of complex data.
///
/// Math     y = Im x; the adjoint embeds: y -> i Re y
/// DTypes   complex -> real; of real data zeros
NamedLinop ImagPart(Dims dims = "...");
/// Complex numbers as pairs of real ones along a new last dimension of size 2.
///
/// Math     y[.., 0] = Re x, y[.., 1] = Im x: isometric; the adjoint is AsComplex; N is Identity
/// Errors   ShapeError "already contains"
/// Cost     none: a view
NamedLinop AsReal(Dims dims = "...", ND pair = "R");
/// The adjoint of AsReal. `dims` are those of the complex side.
NamedLinop AsComplex(Dims dims = "...", ND pair = "R");

}  // namespace palimpsest
