// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct DenseOptions {
  /// Dimensions of the weight that have one element and stretch.
  Dims broadcast = {};
  /// Names of the output where they differ from the labels.
  std::optional<Dims> output = {};
};
/// A contraction with a weight.
///
/// Math     y[o] = sum of W[w] x[i] over the dimensions that are not in o; the adjoint contracts
///          conj(W) with o and i exchanged. The normal operator is one Dense with the Gram weight
///          when that has at most twice as many elements as W
/// Shapes   `Dense(W)`: the last axis is the input, the one before it the output, the rest batch.
///          Names become labels here: renaming never changes the contraction
/// Errors   ValueError "at least 2D", "einsum", "repeated", "appears only in", "not in weightshape"
/// Cost     a (batched) matrix product where it is one, else one pass; no conjugate copy of W
NamedLinop Dense(Parameter W);
NamedLinop Dense(Parameter W, std::string_view einsum, DenseOptions options = {});
NamedLinop Dense(Parameter W, Dims weightshape, Dims ishape, Dims oshape,
                 DenseOptions options = {});

}  // namespace palimpsest
