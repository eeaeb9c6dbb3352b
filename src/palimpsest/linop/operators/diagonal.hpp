// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct DiagonalOptions {
  /// The dimensions of the axes of w, in order; default: the last ones.
  std::optional<Dims> weight_shape = {};
  /// Dimensions along which w is stretched: it has no such axis, or one of one element.
  Dims broadcast = {};
  /// Sizes of dimensions that w does not give.
  DimMap sizes = {};
};
/// Multiplies elementwise.
///
/// Math     w x / conj(w) x / |w|^2 x
/// Shapes   w's axes belong to the last dimensions, or to weight_shape; axes of one element stretch
/// Errors   ShapeError "dimensions must be named": w has more axes than there are names
NamedLinop Diagonal(Parameter w, Dims dims = "...", DiagonalOptions options = {});

}  // namespace palimpsest
