// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Multiplies by one number, real or complex, or by a 0-d parameter.
///
/// Math     alpha x / conj(alpha) x / |alpha|^2 x
/// DTypes   a number takes the precision of x; one without imaginary part keeps real x real
/// Errors   ShapeError: a parameter that has axes
NamedLinop Scalar(const LinopScalar& alpha, Dims dims = "...");
NamedLinop Scalar(const Parameter& alpha, Dims dims = "...");

}  // namespace palimpsest
