// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct RestrictOptions {
  /// Sizes of the dimensions before the cut, for the adjoint.
  DimMap sizes = {};
  /// Names of the cut dimensions, in the order of `cuts`; default fresh ones.
  std::optional<Dims> out = {};
};
/// Parts of dimensions: start <= n < stop of each.
///
/// Math     y[n] = x[start + n]; N sets the removed elements to 0
/// Shapes   `dims` -> the same with new names for the cut dimensions
/// Errors   ValueError "step", "empty", "out of range"; ShapeError "is unknown": the adjoint
///          without the size of a cut dimension
/// Cost     none: a view
NamedLinop Restrict(Dims dims, std::vector<std::pair<ND, Slice>> cuts,
                    RestrictOptions options = {});
/// The adjoint of Restrict: zeros around x. `dims` and the slices are those of the result. N is
/// Identity.
NamedLinop Embed(Dims dims, std::vector<std::pair<ND, Slice>> cuts, RestrictOptions options = {});

}  // namespace palimpsest
