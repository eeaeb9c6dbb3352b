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
/// The dimensions that the parameters of a function broadcast against: those of its operand, or the
/// range of the operator of an Affine.
Dims parameter_dims(const Prox& g);

}  // namespace palimpsest
