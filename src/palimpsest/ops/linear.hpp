// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/gradient.hpp"

namespace PALIMPSEST_API palimpsest {

/// Kind of linearity of y as a function of x, every other root of the graph held fixed. An affine
/// function is not linear. For real x and y `complex` means linear.
Linearity is_linear(const Variable& y, const Variable& x);

/// A^H w for a graph y = A x: the adjoint for Re<u, v>.
/// Errors   NotLinearError naming the first op that makes y nonlinear or affine in x; and as
///          pullback
Variable linear_adjoint(const Variable& y, const Variable& x, const Variable& w);

}  // namespace palimpsest
