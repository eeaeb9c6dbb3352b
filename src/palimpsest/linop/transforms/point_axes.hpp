// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"

// Common parts of operators from grids to points: parameter "locs" (k.., D), attribute "grid_size".
namespace palimpsest {

/// The axes of the points: all of the locations but the last.
Extents point_extents(const NamedLinop& A);
/// Sizes of the grid's and the points' dimensions.
std::optional<index_t> grid_to_points_size(const NamedLinop& A, const ND& d);
/// Cuts the points, or batches; the grid is refused. Sort orders are made anew.
NamedLinop grid_to_points_split(const NamedLinop& A, const Tile& tile);
/// Errors   ValueError "locs": another number of coordinates; "finite"; DTypeError
void check_locs(const NamedLinop& A);
/// Names for the axes of points: the given ones, or K, or K1, K2, ..
/// Errors   ValueError naming `who`
Dims point_names(const std::optional<Dims>& names, const TensorType& locs, std::string_view who);
/// The given names, one per grid axis, or anonymous wildcards.
Dims grid_names(const std::optional<Dims>& names, std::size_t n, std::string_view who);

/// Numbers as an attribute, and back.
Attribute number_list(const PerAxis& values);
PerAxis per_axis(const Attribute& list);

}  // namespace palimpsest
