// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/op.hpp"

namespace PALIMPSEST_API palimpsest {

/// Behaviour of grad for a variable that the cost does not depend on.
enum class Disconnected {
  raise,  // DisconnectedError
  zero,   // its gradient is zeros
  none,   // its gradient is an undefined Variable
};

struct GradOptions {
  /// Variables through which no gradient flows.
  std::vector<Variable> consider_constant = {};
  Disconnected disconnected = Disconnected::raise;
  /// (variable, its gradient): taken as they are; nothing is propagated down to these variables.
  std::vector<std::pair<Variable, Variable>> known_grads = {};
};

/// The gradients of a real scalar.
///
/// Math     for a real C and z = a + ib: dC/da + i dC/db, the direction of steepest ascent, so that
///          z - t*g descends. Integers have zero gradients
/// Errors   TypeError: the cost is not a real scalar; DisconnectedError; as pullback
/// Cost     as pullback
std::vector<Variable> grad(const Variable& cost, std::span<const Variable> wrt,
                           const GradOptions& options = {});
std::vector<Variable> grad(const Variable& cost, std::initializer_list<Variable> wrt,
                           const GradOptions& options = {});
Variable grad(const Variable& cost, const Variable& wrt, const GradOptions& options = {});

/// Cotangents of `wrt`, given those of `outs` (undefined where zero), through all paths; zeros for
/// a variable that no output depends on.
///
/// Math     the adjoint of the derivative for the real inner product Re<u, v>; a real variable
///          receives the real part
/// Errors   NotSupported: an op on a path has no derivative; ShapeError, DTypeError: a cotangent
///          that is not of its output's type
/// Cost     one application of an op's pullback per application between wrt and outs; iterative
std::vector<Variable> pullback(std::span<const Variable> outs, std::span<const Variable> wrt,
                               std::span<const Variable> cotangents);

/// Tangents of `outs`, given those of `wrt` (undefined where zero): the directional derivative.
/// Zeros for an output that depends on none.
///
/// Errors   as pullback
/// Cost     one application of an op's pushforward per application between wrt and outs; iterative
std::vector<Variable> pushforward(std::span<const Variable> outs, std::span<const Variable> wrt,
                                  std::span<const Variable> tangents);

namespace ops {

/// x, without a derivative. A view.
Variable stop_gradient(const Variable& x);

/// The tangents of the outputs of one application: by the op's own rule; else by the op itself, if
/// it is linear in the inputs with a tangent; else as the adjoint of its pullback.
std::vector<Variable> pushforward_of(const Apply& apply, std::span<const Variable> tangents);

}  // namespace ops
}  // namespace palimpsest
