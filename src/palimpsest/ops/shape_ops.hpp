// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest::ops {

/// Other extents, the same elements in row-major order; one may be -1. A view where strides allow.
Variable reshape(const Variable& x, Extents shape);
/// All elements along one axis, in row-major order. A view where strides allow.
Variable ravel(const Variable& x);
/// A view with the axes in another order.
Variable transpose(const Variable& x, Axes order);
/// New axes of one element at these positions of the result. A view.
Variable expand_dims(const Variable& x, Axes axes);
/// Without these axes, whose extent must be 1. A view.
Variable squeeze(const Variable& x, Axes axes);
/// Axes known to be 1, and new leading ones, stretched to `shape` (kUnknown keeps). A view.
Variable broadcast_to(const Variable& x, Extents shape);
/// Fixes extents that are unknown so far (kUnknown keeps); checked when the shapes are known.
Variable specify_shape(const Variable& x, Extents shape);
/// Reversed along the axes. A view.
Variable flip(const Variable& x, Axes axes);
/// Constant padding: (before, after) per axis, neither negative.
Variable pad(const Variable& x, std::vector<std::pair<index_t, index_t>> widths, double value = 0);
/// Rotated by `shift` along an axis: y[i] = x[i - shift].
Variable roll(const Variable& x, index_t shift, index_t axis);
/// Joined along an axis.
Variable join(index_t axis, std::span<const Variable> parts);

}  // namespace palimpsest::ops
