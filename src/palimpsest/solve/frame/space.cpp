// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/space.hpp"

#include <algorithm>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

// Where d lies among n axes. An ellipsis stands for all axes that have no name.
index_t position(const Dims& dims, const ND& d, std::size_t rank) {
  const auto found = std::find(dims.begin(), dims.end(), d);
  if (found == dims.end()) {
    throw ShapeError("batch: got dimension " + d.str() + ", expected some of " + dims.str());
  }
  const auto index = found - dims.begin();
  const bool is_behind_ellipsis =
      std::any_of(dims.begin(), found, [](const ND& other) { return other.is_ellipsis(); });
  if (!is_behind_ellipsis) return index;
  return static_cast<index_t>(rank) - (dims.end() - found);
}

}  // namespace

Space::Space(TensorType type, Dims dims, const Dims& batch)
    : type_(std::move(type)), dims_(std::move(dims)) {
  for (const ND& d : batch) batch_axes_.push_back(position(dims_, d, type_.rank()));
}

TensorType Space::number_type() const {
  Extents extents;
  for (const index_t axis : batch_axes_) {
    extents.push_back(type_.shape[static_cast<std::size_t>(axis)]);
  }
  return {real_of(type_.dtype), extents, type_.device};
}

namespace {

// Sums over the axes that are not of the batch, whose axes come out in the order of the batch.
Variable summed(const Variable& terms, const Axes& batch_axes) {
  Axes others;
  for (index_t axis = 0; axis < static_cast<index_t>(terms.rank()); ++axis) {
    if (std::find(batch_axes.begin(), batch_axes.end(), axis) == batch_axes.end()) {
      others.push_back(axis);
    }
  }
  const Variable sums = terms.sum(others);
  Axes order(batch_axes.begin(), batch_axes.end());
  Axes sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (index_t& axis : order) {
    axis = std::find(sorted.begin(), sorted.end(), axis) - sorted.begin();
  }
  return std::is_sorted(order.begin(), order.end()) ? sums : ops::transpose(sums, order);
}

}  // namespace

Variable Space::dot(const Variable& a, const Variable& b) const {
  if (batch_axes_.empty()) return ops::vdot(a, b);
  return summed(ops::conj(a) * b, batch_axes_);
}

Variable Space::real_dot(const Variable& a, const Variable& b) const {
  const Variable product = dot(a, b);
  // Not as a view: a number that is kept must not keep a complex one.
  return is_complex(product.dtype()) ? ops::elementwise(ScalarOp::real, {product}) : product;
}

Variable Space::norm2(const Variable& a) const {
  if (batch_axes_.empty()) return ops::norm2(a);
  return summed(ops::elementwise(ScalarOp::abs2, {a}), batch_axes_);
}

Variable Space::spread(const Variable& number) const {
  if (batch_axes_.empty() || number.rank() == 0) return number;
  Extents extents(type_.rank(), 1);
  Axes sorted(batch_axes_.begin(), batch_axes_.end());
  std::sort(sorted.begin(), sorted.end());
  Axes order;
  for (const index_t axis : sorted) {
    order.push_back(std::find(batch_axes_.begin(), batch_axes_.end(), axis) - batch_axes_.begin());
    extents[static_cast<std::size_t>(axis)] = type_.shape[static_cast<std::size_t>(axis)];
  }
  const bool is_ordered = std::is_sorted(order.begin(), order.end());
  return (is_ordered ? number : ops::transpose(number, order)).reshape(extents);
}

}  // namespace palimpsest
