// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palimpsest/linop/core/node.hpp"

// Common parts of the rules of `split`. A rule gets the operator in the orientation of its type,
// and a tile. Every slice of the tile has a start and a stop, is shorter than a known size of its
// dimension, and belongs to one of the operator's dims().
namespace palimpsest {

/// A slice with both ends.
struct TileRange {
  index_t start = 0, stop = 0;
  index_t size() const { return stop - start; }
};
/// The range of d; none if the tile does not cut it.
std::optional<TileRange> range_of(const Tile& tile, const ND& d);
/// The tile without the dimensions that are not among these.
Tile tile_within(const Tile& tile, const Dims& dims);

/// SplitError "cannot split" naming the operator, the dimension and the reason.
[[noreturn]] void refuse_split(const NamedLinop& A, const ND& d, const std::string& reason);

/// Recorded sizes, cut.
DimMap cut_sizes(const DimMap& sizes, const Tile& tile);
/// The operator's data with recorded sizes cut: where the rule of a leaf starts.
LinopData tile_data(const NamedLinop& A, const Tile& tile);
/// The same operator on smaller arrays.
NamedLinop split_unchanged(const NamedLinop& A, const Tile& tile);
/// Does as split_unchanged(). Refuses dimensions on these axes of ishape or of oshape.
NamedLinop split_besides(const NamedLinop& A, const Tile& tile, std::span<const index_t> in_axes,
                         std::span<const index_t> out_axes, const std::string& reason);
/// Replaces a parameter.
void put_param(LinopData& data, std::string_view name, Parameter value);
/// Replaces an attribute.
void put_attr(LinopData& data, std::string_view name, Attribute value);

/// Zero with the shape of A, and all sizes that A knows recorded.
NamedLinop zero_like(const NamedLinop& A);
/// SplitError if a Zero in place of this block would lack the size of a dimension that only one
/// side has.
void refuse_unknown_zero(const NamedLinop& A, const NamedLinop& block, const DimMap& sizes,
                         const ND& along);
/// A container made by a rule, with the recorded sizes of A, cut.
NamedLinop with_recorded(const NamedLinop& made, const NamedLinop& A, const Tile& tile);
/// The children of a sum, each on its part of the tile. Along a dimension that neither shape of A
/// has, a child that lacks it belongs to the tile that starts at 0 and is Zero in others.
std::vector<NamedLinop> split_summands(const NamedLinop& A, const Tile& tile);

}  // namespace palimpsest
