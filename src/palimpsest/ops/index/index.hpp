// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// Basic index: elements, ranges, new axes. A view.
Variable index(const Variable& x, std::vector<Index> index);
/// x with the elements of a basic index replaced by the value, or increased by it.
Variable set_subtensor(const Variable& x, std::vector<Index> index, const Variable& value);
Variable inc_subtensor(const Variable& x, std::vector<Index> index, const Variable& value);

/// An indexed array with arrays among the entries, as x(...) builds it: a basic index, which is a
/// view, then the points that the arrays name, which are copied.
///
/// Shapes   index arrays broadcast against each other, numbers next to them count as such; their
///          axes stand at the place of the arrays, or first if a basic entry is between them. An
///          array of bools names the elements where it is true; if it is not constant, their number
///          is known only at run time
/// Errors   ValueError: a point outside; DTypeError, ShapeError
Variable indexed(const Variable& x, const std::vector<IndexEntry>& entries);
/// For y = x(...): x with these elements replaced by the value, or increased by it, which
/// broadcasts. Of repeated points the last one is set, every one is added, in index order.
/// Errors   ValueError: y is not an indexed value
Variable set_subtensor(const Variable& y, const Operand& value);
Variable inc_subtensor(const Variable& y, const Operand& value);

/// Positions of the true elements of an array of bools, one array (int64) for each axis, in
/// row-major order. How many there are is known only when it runs.
/// Errors   DTypeError: no bools; ShapeError: no axes
std::vector<Variable> nonzero(const Variable& mask);

/// x at these positions along an axis, or elements of x by their row-major number. The axes of the
/// positions take the place of the axis.
Variable take(const Variable& x, const Variable& indices, std::optional<index_t> axis = {});

/// Reads points of the last D = indices.size() axes.
///
/// Math     y[b.., k..] = x[b.., i_1[k..], ..., i_D[k..]]
/// Shapes   the index arrays (int64) broadcast against each other; their axes come last
/// Errors   ValueError "range": a constant or shared index outside the axis, before anything runs
/// Cost     one pass over the output
Variable gather(const Variable& x, std::span<const Variable> indices);
/// The adjoint of gather: adds every value to its point in an array of zeros with the extents
/// `sizes` of its last axes. Repeated points accumulate in index order.
Variable scatter_add(const Variable& y, std::span<const Variable> indices, Extents sizes);

}  // namespace ops
}  // namespace palimpsest
