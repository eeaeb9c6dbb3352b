// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest {

/// Cotangents of `wrt`, given those of `outs` (undefined where zero), through all paths; zeros for
/// a variable that no output depends on.
///
/// Math     the adjoint of the derivative for the real inner product Re<u, v>: of a real C and z =
///          a + ib it gives dC/da + i dC/db; a real variable receives the real part
/// Errors   NotSupported: an op on a path has no derivative; ShapeError, DTypeError: a cotangent
///          that is not of its output's type
/// Cost     one application of an op's pullback per application between wrt and outs; iterative
std::vector<Variable> pullback(std::span<const Variable> outs, std::span<const Variable> wrt,
                               std::span<const Variable> cotangents);

/// In what sense y is a linear function of x, every other root of the graph held fixed. An affine
/// one is none. For real x and y `complex` says no more than linear.
Linearity is_linear(const Variable& y, const Variable& x);

/// A^H w for a graph y = A x: the adjoint for Re<u, v>.
/// Errors   NotLinearError naming the first op that makes y nonlinear or affine in x; and as
///          pullback
Variable linear_adjoint(const Variable& y, const Variable& x, const Variable& w);

}  // namespace palimpsest
