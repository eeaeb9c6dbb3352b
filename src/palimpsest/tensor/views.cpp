// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
namespace {

std::size_t axis_of(index_t axis, std::size_t rank, std::string_view who) {
  return static_cast<std::size_t>(normalize_axis(axis, rank, who));
}

std::string of_axis(std::string_view who, std::size_t axis) {
  return "[" + std::string(who) + "] axis " + std::to_string(axis) + ": ";
}

}  // namespace

Extents infer_extent(Extents shape, index_t count, std::string_view who) {
  index_t known = 1;
  std::optional<std::size_t> open;
  const auto fail = [&](const std::string& what) {
    return ShapeError("[" + std::string(who) + "] " + what + ": got shape " + to_string(shape) +
                      ", expected " + std::to_string(count) + " elements");
  };
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == -1) {
      if (open) throw fail("more than one extent is -1");
      open = axis;
    } else if (shape[axis] < 0) {
      throw fail("negative extent on axis " + std::to_string(axis));
    } else {
      known = shape[axis] == 0 || known == 0 ? 0 : checked_multiply(known, shape[axis]);
    }
  }
  if (open) {
    if (known == 0 || count % known != 0) throw fail("the extent -1 cannot be inferred");
    shape[*open] = count / known;
  } else if (known != count) {
    throw fail("the number of elements differs");
  }
  return shape;
}

Tensor Tensor::select(index_t axis, index_t i) const {
  const std::size_t a = axis_of(axis, rank(), "Tensor.select");
  if (i < -shape_[a] || i >= shape_[a]) {
    throw ShapeError(of_axis("Tensor.select", a) + "index out of range: got " + std::to_string(i) +
                     ", expected " + std::to_string(-shape_[a]) + " .. " +
                     std::to_string(shape_[a] - 1));
  }
  Tensor view = *this;
  view.offset_ += (i < 0 ? i + shape_[a] : i) * strides_[a];
  view.shape_.erase(a);
  view.strides_.erase(a);
  return view;
}

Tensor Tensor::narrow(index_t axis, index_t start, index_t length) const {
  const std::size_t a = axis_of(axis, rank(), "Tensor.narrow");
  const index_t n = shape_[a];
  const index_t first = start < 0 ? start + n : start;
  if (first < 0 || first > n || length < 0 || length > n - first) {
    throw ShapeError(of_axis("Tensor.narrow", a) + "range outside: got start " +
                     std::to_string(start) + " and length " + std::to_string(length) +
                     ", expected a part of " + std::to_string(n) + " elements");
  }
  Tensor view = *this;
  view.shape_[a] = length;
  // An empty view keeps its offset: behind the last element there may be nothing to point to.
  if (length > 0) view.offset_ += first * strides_[a];
  return view;
}

Tensor Tensor::permute(std::span<const index_t> axes) const {
  if (axes.size() != rank()) {
    throw ShapeError("[Tensor.permute] every axis must be named once: got axes " + to_string(axes) +
                     ", expected " + std::to_string(rank()) + " of them");
  }
  normalize_axes(axes, rank(), "Tensor.permute");
  Tensor view = *this;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t a = axis_of(axes[i], rank(), "Tensor.permute");
    view.shape_[i] = shape_[a];
    view.strides_[i] = strides_[a];
  }
  return view;
}

Tensor Tensor::permute(std::initializer_list<index_t> axes) const {
  return permute(std::span<const index_t>(axes.begin(), axes.size()));
}

Tensor Tensor::transpose(index_t a, index_t b) const {
  const std::size_t first = axis_of(a, rank(), "Tensor.transpose");
  const std::size_t second = axis_of(b, rank(), "Tensor.transpose");
  Tensor view = *this;
  std::swap(view.shape_[first], view.shape_[second]);
  std::swap(view.strides_[first], view.strides_[second]);
  return view;
}

Tensor Tensor::expand(Extents shape) const {
  check_defined();
  const auto fail = [&](const std::string& what) {
    return ShapeError("[Tensor.expand] " + what + ": got " + to_string(shape_) +
                      ", expected to fit " + to_string(shape));
  };
  if (shape.size() < rank()) throw fail("fewer axes than there are");
  if (shape.size() > kMaxRank) throw fail("too many axes");
  const std::size_t lead = shape.size() - rank();
  Strides strides(shape.size());
  for (std::size_t i = lead; i < shape.size(); ++i) {
    const index_t extent = shape_[i - lead];
    if (shape[i] == -1) shape[i] = extent;
    if (shape[i] == extent) {
      strides[i] = strides_[i - lead];
    } else if (extent != 1) {
      throw fail("axis " + std::to_string(i - lead) + " cannot be stretched");
    }
  }
  const bool is_stretched = element_count(shape) != numel();
  Tensor view = view_with(dtype_, shape, strides, offset_);
  view.is_plain_ = is_plain_ && !is_stretched;
  return view;
}

Tensor Tensor::squeeze(index_t axis) const {
  const std::size_t a = axis_of(axis, rank(), "Tensor.squeeze");
  if (shape_[a] != 1) {
    throw ShapeError(of_axis("Tensor.squeeze", a) + "got extent " + std::to_string(shape_[a]) +
                     ", expected 1");
  }
  return select(axis, 0);
}

Tensor Tensor::unsqueeze(index_t axis) const {
  if (rank() == kMaxRank) {
    throw ShapeError("[Tensor.unsqueeze] too many axes: expected at most " +
                     std::to_string(kMaxRank));
  }
  const std::size_t a = axis_of(axis, rank() + 1, "Tensor.unsqueeze");
  Tensor view = *this;
  view.shape_.insert(a, 1);
  view.strides_.insert(a, 1);
  return view;
}

Tensor Tensor::flip(std::span<const index_t> axes) const {
  const Axes flipped = normalize_axes(axes, rank(), "Tensor.flip");
  Tensor view = *this;
  const bool has_elements = numel() > 0;
  for (const index_t axis : flipped) {
    const auto a = static_cast<std::size_t>(axis);
    if (has_elements) view.offset_ += (shape_[a] - 1) * strides_[a];
    view.strides_[a] = -strides_[a];
  }
  return view;
}

Tensor Tensor::diagonal(index_t offset, index_t a, index_t b) const {
  const std::size_t row = axis_of(a, rank(), "Tensor.diagonal");
  const std::size_t column = axis_of(b, rank(), "Tensor.diagonal");
  if (row == column) {
    throw ShapeError("[Tensor.diagonal] two different axes are needed: got axis " +
                     std::to_string(row) + " twice");
  }
  offset = std::clamp(offset, -shape_[row], shape_[column]);  // a farther diagonal is empty, too
  const index_t rows = shape_[row] - (offset < 0 ? -offset : 0);
  const index_t columns = shape_[column] - (offset > 0 ? offset : 0);
  const index_t length = std::max<index_t>(0, std::min(rows, columns));
  const index_t stride = strides_[row] + strides_[column];
  Tensor view = *this;
  if (length > 0) {
    view.offset_ += offset < 0 ? -offset * strides_[row] : offset * strides_[column];
  }
  view.shape_.erase(std::max(row, column));
  view.shape_.erase(std::min(row, column));
  view.strides_.erase(std::max(row, column));
  view.strides_.erase(std::min(row, column));
  view.shape_.push_back(length);
  view.strides_.push_back(stride);
  return view;
}

Tensor Tensor::unfold(index_t axis, index_t size, index_t step) const {
  const std::size_t a = axis_of(axis, rank(), "Tensor.unfold");
  if (size < 0 || size > shape_[a] || step < 1 || rank() == kMaxRank) {
    throw ShapeError(of_axis("Tensor.unfold", a) + "got size " + std::to_string(size) +
                     " and step " + std::to_string(step) + ", expected a size of at most " +
                     std::to_string(shape_[a]) + ", a step of at least 1, and at most " +
                     std::to_string(kMaxRank) + " axes");
  }
  Tensor view = *this;
  const index_t stride = strides_[a];
  view.shape_[a] = (shape_[a] - size) / step + 1;
  view.is_plain_ = is_plain_ && size <= step;
  // A window needs no stride; the product might not fit.
  view.strides_[a] = view.shape_[a] > 1 ? checked_multiply(stride, step) : stride;
  view.shape_.push_back(size);
  view.strides_.push_back(stride);
  return view;
}

Tensor Tensor::view(Extents shape) const {
  Extents wanted = infer_extent(std::move(shape), numel(), "Tensor.view");
  check_layout(wanted, wanted, "Tensor.view");
  Strides strides;
  if (!view_strides(shape_, strides_, wanted, strides)) {
    throw ShapeError("[Tensor.view] the strides allow no view: got shape " + to_string(shape_) +
                     " with strides " + to_string(strides_) + ", expected to view it as " +
                     to_string(wanted) + ". Try reshape().");
  }
  return view_with(dtype_, wanted, strides, offset_);
}

Tensor Tensor::as_strided(Extents shape, Strides strides, index_t offset) const {
  check_defined();
  return Tensor(storage_, dtype_, std::move(shape), std::move(strides), offset);
}

}  // namespace palimpsest
