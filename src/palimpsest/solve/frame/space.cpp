// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/space.hpp"

#include <algorithm>
#include <utility>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
Space::Space(TensorType type, Dims dims, const Dims& batch)
    : type_(std::move(type)), dims_(std::move(dims)) {
  Axes axes;
  for (const ND& d : batch) axes.push_back(axis_of(dims_, d, "batch"));
  batch_axes_ = from_front(axes, type_.rank());
}

Space Space::of(const NamedLinop& A, VectorSide side) const {
  Space space = *this;
  space.spread_by_ = A;
  space.side_ = side;
  const Variable number = tensor(DType::float64, {}, "number");
  space.is_in_parts_ = space.total(number) != number;
  if (!space.is_in_parts_) space.spread_by_ = NamedLinop();
  return space;
}

Space Space::of_type(TensorType type) const {
  Space space = *this;
  space.type_ = std::move(type);
  return space;
}

Variable Space::total(const Variable& number) const {
  return spread_by_.defined() ? palimpsest::total(spread_by_, side_, number) : number;
}

Dims Space::cut_dims() const {
  return spread_by_.defined() ? palimpsest::cut_dims(spread_by_, side_) : Dims();
}

double Space::total(double number) const {
  const Variable v = tensor(DType::float64, {}, "number");
  const Variable sum = total(v);
  return sum == v ? number : function({v}, sum)(Tensor::full({}, number)).item<double>();
}

TensorType Space::number_type() const {
  Extents extents;
  for (const index_t axis : batch_axes_) {
    extents.push_back(type_.shape[static_cast<std::size_t>(axis)]);
  }
  return {real_of(type_.dtype), extents, type_.device};
}

Variable sum_besides(const Variable& terms, const Axes& batch_axes) {
  Axes others;
  for (index_t axis = 0; axis < static_cast<index_t>(terms.rank()); ++axis) {
    if (std::find(batch_axes.begin(), batch_axes.end(), axis) == batch_axes.end()) {
      others.push_back(axis);
    }
  }
  const Variable sums = terms.sum(others);
  Axes sorted(batch_axes.begin(), batch_axes.end());
  std::sort(sorted.begin(), sorted.end());
  Axes order;
  for (const index_t axis : batch_axes) {
    order.push_back(std::find(sorted.begin(), sorted.end(), axis) - sorted.begin());
  }
  return std::is_sorted(order.begin(), order.end()) ? sums : ops::transpose(sums, order);
}

Variable Space::dot(const Variable& a, const Variable& b) const {
  return total(batch_axes_.empty() ? ops::vdot(a, b) : sum_besides(ops::conj(a) * b, batch_axes_));
}

Variable Space::real_dot(const Variable& a, const Variable& b) const {
  const Variable product = dot(a, b);
  // Not as a view: a number that is kept must not keep a complex one.
  return is_complex(product.dtype()) ? ops::elementwise(ScalarOp::real, {product}) : product;
}

Variable Space::norm2(const Variable& a) const {
  return total(batch_axes_.empty()
                   ? ops::norm2(a)
                   : sum_besides(ops::elementwise(ScalarOp::abs2, {a}), batch_axes_));
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
