// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>

#include "palimpsest/linop/containers/container.hpp"

// Common parts of Concat and Stack. The shape `along` holds the dimensions along which they cut
// inputs and join outputs, so that these follow renamings. The attributes `in` and `out` are
// positions in that shape; -1 for none.
namespace palimpsest {

struct Along {
  std::optional<ND> in, out;
  bool has(const ND& d) const { return in == d || out == d; }
  Along exchanged() const { return {out, in}; }
};

Along along_of(const NamedLinop& A);
Along along_of(const NamedShape::Others& others, const Attributes& attrs);
/// The further shape, and the attributes, of a new container with these dimensions.
NamedShape::Others along_shape(const Along& along);
Attributes along_roles(const Along& along);
/// The attributes and shapes of the adjoint's: roles exchanged.
Attributes exchanged_roles(const NamedLinop& A);
/// The shapes that a container of some of the children keeps.
NamedShape::Others along_only(const NamedLinop& A);

/// Adjoints of the children.
std::vector<NamedLinop> adjoints_of(const NamedLinop& A);
/// Normal operators of the children, each with its size of d, which it may have forgotten.
std::vector<NamedLinop> normals_of(const NamedLinop& A, const ND& d);

/// x without an axis, and with the elements start <= i < stop of it only.
Variable select(const Variable& x, index_t axis, index_t i);
Variable part(const Variable& x, index_t axis, index_t start, index_t stop);
/// ((y0 + y1) + y2) + ...
Variable summed_up(const std::vector<Variable>& terms);

/// A rectangle of a block matrix: the blocks `core`, which input and output parts share, between
/// zero columns for the parts of the input, and zero rows for those of the output, that meet no
/// block of it.
struct BlockEdges {
  ND in, out;
  index_t columns_before = 0, columns_after = 0, rows_before = 0, rows_after = 0;
};
NamedLinop with_zero_edges(const NamedLinop& core, const BlockEdges& edges);

/// ShapeError unless all children have equal shapes; makes their wildcards definite.
void unify_shapes(std::string_view who, std::vector<NamedLinop>& children);

}  // namespace palimpsest
