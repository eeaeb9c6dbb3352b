// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of containers whose vectors are spread over ranks. Their attributes are
// `team`, the number of a team, and `input` and `output`, the axes of vectors of which each rank
// holds its part. An axis of -1 says that each rank has a vector for itself.
#pragma once

#include "palimpsest/distributed/move_parts.hpp"
#include "palimpsest/distributed/placement.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/core/total.hpp"

namespace palimpsest::distributed_detail {

Attribute attribute_of(const AxisNames& names);
AxisNames names_of(const NamedLinop& A, std::string_view attribute);
Attribute attribute_of(const CutAxes& cuts);
/// The same for "input" and "output", with the number of this rank's part, the number of all parts,
/// and the start of this one. See random_part().
Attribute spread_of(const Team& team, const CutAxes& cuts);
CutAxes cuts_of(const NamedLinop& A, std::string_view attribute);
/// The same, of arrays of a rank: an ellipsis in front of a cut may stand for any number of axes.
CutAxes cuts_of(const NamedLinop& A, std::string_view attribute, std::size_t rank);
Team team_in(const NamedLinop& A);

/// A dimension of the operators that ranks along an axis of a team have parts of. `extent`: of this
/// rank's part, -1 where the part itself knows it.
struct CutDim {
  std::string d, team_axis;
  index_t extent = -1;
};
using CutDims = std::vector<CutDim>;
/// The cuts of containers whose first child is a part, as the attribute "cut_dims".
Attribute attribute_of(const CutDims& cuts);
CutDims cut_dims_of(const NamedLinop& A);

// Entries of a LinopType.
NamedShape assemble_part(std::vector<NamedLinop>& children, const Assembly& how);
NamedLinop refuse_tiles(const NamedLinop& A, const Tile& tile);
extern const VectorParts kVectorParts;

/// The operator on a tile. If a range is empty: zeros of the dtype of A's result.
NamedLinop part_of_tile(const NamedLinop& A, const Tile& tile);
/// True if A holds an operator that part_of_tile() gave for an empty range.
bool has_empty_part(const NamedLinop& A);
/// A with the tiles of one index that empty parts of it hold to know its dtypes, or with the whole
/// operator where that has no index.
NamedLinop without_empty_parts(const NamedLinop& A);

/// A leaf or container with other recorded sizes than it has.
NamedLinop with_other_sizes(const NamedLinop& A, const DimMap& sizes);
/// The size of an axis of both shapes. ShapeError "is unknown".
index_t known_size(const NamedLinop& A, std::size_t axis);
/// The sizes of the axes of both shapes, -1 if unknown: "extents" of containers whose child is the
/// whole operator.
Attribute extents_of_whole(const NamedLinop& A);
/// The dimensions of A with the sizes of this rank's parts, where they are known. `behind`: the
/// placement of the result.
DimMap sizes_of_part(const NamedLinop& A, const Team& team, const Placement& placement,
                     const Placement& behind);
/// The axes of `dims` that a placement cuts, with the extents in A; -1 if unknown.
CutAxes cuts_in(const Dims& dims, const Placement& placement, const NamedLinop& A = {});
/// The axes of the team that cut.
AxisNames team_axes(const CutAxes& cuts);

}  // namespace palimpsest::distributed_detail
