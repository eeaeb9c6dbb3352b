// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// Number of blocks that fit: floor((im - block) / stride) + 1 per axis.
/// Errors   ValueError "block": none does, or a size or stride that is not positive
Extents nblocks(const Extents& im, const Extents& block, const Extents& stride);
index_t nblocks(index_t im, index_t block, index_t stride);

namespace ops {

/// Blocks of the last D axes, D = number of block sizes; they may overlap.
///
/// Math     y[b, m, p] = x[b, m stride + p]
/// Shapes   x (b.., n..) -> y (b.., m.., p..), m = nblocks(n, block, stride)
/// Errors   ValueError "block"; ShapeError: fewer axes, or extents that are unknown
/// Cost     one pass
Variable array_to_blocks(const Variable& x, Extents block, Extents stride);
/// The adjoint: adds blocks up into an array with the extents `im_size` of its last axes, always in
/// the same order.
Variable blocks_to_array(const Variable& y, Extents im_size, Extents block, Extents stride);

}  // namespace ops
}  // namespace palimpsest
