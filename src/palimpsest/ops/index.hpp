// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "palimpsest/graph/variable.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::ops {

/// Basic index: elements, ranges, new axes. A view.
Variable index(const Variable& x, std::vector<Index> index);
/// x with the elements of a basic index replaced by the value, or increased by it.
Variable set_subtensor(const Variable& x, std::vector<Index> index, const Variable& value);
Variable inc_subtensor(const Variable& x, std::vector<Index> index, const Variable& value);

/// Reads points of the last D = indices.size() axes.
///
/// Math     y[b.., k..] = x[b.., i_1[k..], ..., i_D[k..]]
/// Shapes   the index arrays (int64) broadcast against each other; their axes come last
/// Errors   ValueError "range": a constant or shared index outside the axis, before anything runs
/// Cost     one pass over the output
Variable gather(const Variable& x, std::span<const Variable> indices);
/// The adjoint of gather: adds every value to its point in an array of zeros whose last axes have
/// the extents `sizes`. Repeated points accumulate in index order.
Variable scatter_add(const Variable& y, std::span<const Variable> indices, Extents sizes);

}  // namespace palimpsest::ops
