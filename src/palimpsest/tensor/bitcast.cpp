// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
namespace {

// Each element becomes `ratio` smaller ones.
void divide_elements(Strides& strides, index_t& offset, index_t ratio) {
  for (index_t& stride : strides) stride = checked_multiply(stride, ratio);
  offset *= ratio;
}

// `ratio` neighbours become one element: false unless all strides but the last axis' and the offset
// are multiples. Strides of axes of one element mean nothing.
bool unite_elements(std::span<const index_t> shape, Strides& strides, index_t& offset,
                    index_t ratio) {
  if (offset % ratio != 0) return false;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (shape[axis] > 1 && strides[axis] % ratio != 0) return false;
    strides[axis] /= ratio;
  }
  offset /= ratio;
  return true;
}

}  // namespace

Tensor Tensor::view_as_real() const {
  if (!is_complex(dtype())) {
    throw DTypeError("[Tensor.view_as_real] got " + std::string(name_of(dtype_)) +
                     ", expected a complex dtype");
  }
  if (rank() == kMaxRank) {
    throw ShapeError("[Tensor.view_as_real] too many axes: got " + std::to_string(kMaxRank) +
                     ", expected at most " + std::to_string(kMaxRank - 1));
  }
  Tensor view = *this;
  view.dtype_ = real_of(dtype_);
  divide_elements(view.strides_, view.offset_, 2);
  view.shape_.push_back(2);
  view.strides_.push_back(1);
  return view;
}

Tensor Tensor::view_as_complex() const {
  if (!is_floating(dtype())) {
    throw DTypeError("[Tensor.view_as_complex] got " + std::string(name_of(dtype_)) +
                     ", expected float32 or float64");
  }
  if (rank() == 0 || shape_.back() != 2) {
    throw ShapeError("[Tensor.view_as_complex] last axis: got shape " + to_string(shape_) +
                     ", expected an extent of 2 for (re, im)");
  }
  Tensor view = *this;
  view.dtype_ = complex_of(dtype_);
  const bool is_dense = strides_.back() == 1;
  view.shape_.pop_back();
  view.strides_.pop_back();
  if (!is_dense || !unite_elements(view.shape_, view.strides_, view.offset_, 2)) {
    throw ShapeError("[Tensor.view_as_complex] pairs must be dense and aligned: got strides " +
                     to_string(strides_) + " and offset " + std::to_string(offset_) +
                     ", expected 1 for the last and even numbers else. Try clone() first.");
  }
  return view;
}

Tensor Tensor::bitcast(DType dtype) const {
  const auto old_item = static_cast<index_t>(item_size(dtype_));
  const auto new_item = static_cast<index_t>(item_size(dtype));
  Tensor view = *this;
  view.dtype_ = dtype;
  if (old_item != new_item) {
    const auto fail = [&](const std::string& what) {
      return ShapeError("[Tensor.bitcast] " + what + ": got shape " + to_string(shape_) +
                        ", strides " + to_string(strides_) + ", offset " + std::to_string(offset_) +
                        " of " + std::string(name_of(dtype_)) + ", expected to see " +
                        std::string(name_of(dtype)) + ". Try clone() first.");
    };
    if (rank() == 0) throw fail("items of another size need an axis");
    if (shape_.back() > 1 && strides_.back() != 1) throw fail("the last axis must be dense");
    // The last axis is dense in both dtypes: it is rescaled by extent, not by stride.
    index_t& extent = view.shape_.back();
    view.strides_.back() = 0;
    if (new_item < old_item) {
      divide_elements(view.strides_, view.offset_, old_item / new_item);
      extent *= old_item / new_item;
    } else {
      const index_t ratio = new_item / old_item;
      if (extent % ratio != 0) throw fail("the last axis does not divide");
      if (!unite_elements(shape_, view.strides_, view.offset_, ratio)) {
        throw fail("the strides or the offset do not divide");
      }
      extent /= ratio;
    }
    view.strides_.back() = 1;
  }
  if (numel() > 0) check_alignment(storage_.data(), dtype, "Tensor.bitcast");
  return view;
}

}  // namespace palimpsest
