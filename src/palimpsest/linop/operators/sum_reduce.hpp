// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct SumReduceOptions {
  /// Sizes of summed dimensions, which the adjoint needs.
  DimMap sizes = {};
};
/// Sums over the dimensions that oshape lacks; the adjoint repeats.
///
/// Errors   ShapeError "shorter": oshape is not a shorter ishape; "is unknown": the adjoint of a
///          sum over a dimension of unknown size
NamedLinop SumReduce(Dims ishape, Dims oshape, SumReduceOptions options = {});

}  // namespace palimpsest
