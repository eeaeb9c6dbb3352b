// SPDX-License-Identifier: Apache-2.0
// Internal: proximal steps of operands with parts along the first axis in separate arrays.
#pragma once

#include <vector>

#include "palimpsest/solve/prox/prox.hpp"

namespace palimpsest {

/// bound / max(size, bound): 1 for sizes up to the bound. Each op reads one computed value, so that
/// the chain runs in one pass.
Variable cut_back(const Variable& size, const Variable& bound);
/// True if the function takes norms along the first axis only, for operands with a few parts along
/// it.
bool takes_norms_of_parts(const Prox& g, const TensorType& operand);
/// prox_{s g*} of such a function, for any s, of the parts: their extent along the axis is 1.
std::vector<Variable> conjugate_prox_of_parts(const Prox& g, const std::vector<Variable>& u);
/// True if a finite vector may have a prox that is not: that of a user, or one with parameters,
/// parts or operators. Its result is then guarded, which takes a pass before it is stored.
bool may_leave_range(const Prox& g);
/// The operator K; a Gradient or a Wavelet along names at the end of any shape becomes that of x,
/// which has the names elsewhere.
/// Errors   ShapeError "over": x lacks one
NamedLinop bound_operator(const NamedLinop& K, const Dims& x);
/// The dimensions that the parameters of a function broadcast against: those of its operand, or the
/// range of the operator of an Affine.
Dims parameter_dims(const Prox& g);

}  // namespace palimpsest
