// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

// -- views -------------------------------------------------------------------------------------

/// Other extents, the same elements in row-major order; one may be -1. A view where strides allow.
/// Errors   ShapeError; DTypeError, NotSupported: an extent that is not computed from extents
Variable reshape(const Variable& x, const ShapeArgument& shape);
/// All elements along one axis, in row-major order. A view where strides allow.
Variable ravel(const Variable& x);
/// A view with the axes in another order; without one in the reverse order.
Variable transpose(const Variable& x, Axes order);
Variable transpose(const Variable& x);
Variable swapaxes(const Variable& x, index_t a, index_t b);
Variable moveaxis(const Variable& x, index_t from, index_t to);
/// A view with the axes in this order; std::nullopt is a new axis. An axis that is not named is
/// dropped, and must be known to have one element.
Variable dimshuffle(const Variable& x, const std::vector<std::optional<index_t>>& pattern);
/// New axes of one element at these positions of the result. A view.
Variable expand_dims(const Variable& x, Axes axes);
/// Without these axes, whose extent must be 1; without all that are known to have one element. A
/// view.
Variable squeeze(const Variable& x, Axes axes);
Variable squeeze(const Variable& x);
/// Axes known to be 1, and new leading ones, stretched to `shape` (kUnknown keeps). A view.
Variable broadcast_to(const Variable& x, Extents shape);
/// Fixes extents that are unknown so far (kUnknown keeps); checked when the shapes are known.
Variable specify_shape(const Variable& x, Extents shape);
/// Reversed along the axes. A view.
Variable flip(const Variable& x, Axes axes);
/// Parts of these sizes along an axis; so many equal parts. Views.
/// Errors   ShapeError: sizes that do not add up, an extent that cannot be divided or is unknown
std::vector<Variable> split(const Variable& x, const std::vector<index_t>& sizes, index_t axis = 0);
std::vector<Variable> split(const Variable& x, index_t n_parts, index_t axis = 0);

// -- copies ------------------------------------------------------------------------------------

/// (before, after) per axis, none negative.
using PadWidths = std::vector<std::pair<index_t, index_t>>;

/// A border of one value.
Variable pad(const Variable& x, PadWidths widths, double value = 0);

/// Values around a padded array.
enum class PadMode {
  edge,     // the nearest element
  wrap,     // the array repeats
  reflect,  // the array mirrored at its last element, which is not repeated
};
/// Errors   ShapeError: an axis without elements
Variable pad(const Variable& x, PadWidths widths, PadMode mode);

/// Rotated by `shift` along an axis: y[i] = x[i - shift]. Shifts along several axes are one pass
/// over memory, those along the same axis add up.
Variable roll(const Variable& x, index_t shift, index_t axis);
Variable roll(const Variable& x, const std::vector<index_t>& shifts, const Axes& axes);
/// Joined along an axis, in the dtype that all parts are promoted to.
Variable join(index_t axis, std::span<const Variable> parts);
Variable join(index_t axis, std::initializer_list<Variable> parts);
/// Joined along a new axis at this position of the result.
Variable stack(std::span<const Variable> parts, index_t axis = 0);
Variable stack(std::initializer_list<Variable> parts, index_t axis = 0);
/// The array side by side with itself, `counts` times per axis, aligned from the right.
Variable tile(const Variable& x, const std::vector<index_t>& counts);
/// Every element `count` times in a row along an axis.
Variable repeat(const Variable& x, index_t count, index_t axis);

}  // namespace ops
}  // namespace palimpsest
