// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"
#include "palimpsest/kernels/arrays/stencil.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// A short filter along one axis.
///
/// Math     y[i] = sum_m taps[m] x[step i + offset + start + m]; `edge` defines x beyond its ends.
///          start is 0, or a computed int64 without axes: the filter of x moved by -start, without
///          a copy of x
/// Shapes   x (.., step n, ..) -> y (.., n, ..)
/// Errors   ShapeError "divisible": an extent that is not a multiple of step, or unknown;
///          ValueError "periodic": a start with other edges; DTypeError "start": not int64
/// Cost     one pass
Variable stencil(const Variable& x, Stencil stencil, const Variable& start = {});
/// The adjoint of the stencil with the same parameters.
Variable stencil_adjoint(const Variable& y, Stencil stencil, const Variable& start = {});

}  // namespace ops
}  // namespace palimpsest
