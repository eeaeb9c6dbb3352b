// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
namespace {

// Builds the view axis by axis; `axis_` is the next one of the tensor that is indexed.
class Indexer {
 public:
  Indexer(const Tensor& tensor, std::size_t n_named)
      : shape_(tensor.shape()),
        strides_(tensor.strides()),
        n_unnamed_(shape_.size() - n_named),
        offset_(tensor.offset()) {}

  void operator()(index_t i) {
    const index_t n = shape_[axis_];
    if (i < -n || i >= n) {
      throw ShapeError(on_axis() + "index out of range: got " + std::to_string(i) + ", expected " +
                       std::to_string(-n) + " .. " + std::to_string(n - 1));
    }
    offset_ += (i < 0 ? i + n : i) * strides_[axis_++];
  }
  void operator()(const Slice& slice) {
    if (slice.step == 0) {
      throw ValueError(on_axis() + "step of a slice: got 0, expected another number");
    }
    const SliceRange range = resolve(slice, shape_[axis_]);
    const index_t stride = strides_[axis_++];
    // An empty view keeps its offset: behind the last element there may be nothing to point to.
    if (range.count > 0) offset_ += range.first * stride;
    push(range.count, range.count > 1 ? stride * range.step : stride);
  }
  void operator()(All) { keep(1); }
  void operator()(NewAxis) { push(1, 1); }
  void operator()(EllipsisIndex) { keep(n_unnamed_); }
  void finish() { keep(shape_.size() - axis_); }

  const Extents& shape() const { return new_shape_; }
  const Strides& strides() const { return new_strides_; }
  index_t offset() const { return offset_; }

 private:
  std::string on_axis() const { return "[Tensor.index] axis " + std::to_string(axis_) + ": "; }
  void push(index_t extent, index_t stride) {
    new_shape_.push_back(extent);
    new_strides_.push_back(stride);
  }
  void keep(std::size_t n) {
    for (; n > 0; --n, ++axis_) push(shape_[axis_], strides_[axis_]);
  }

  const Extents& shape_;
  const Strides& strides_;
  const std::size_t n_unnamed_;
  index_t offset_;
  std::size_t axis_ = 0;
  Extents new_shape_;
  Strides new_strides_;
};

}  // namespace

SliceRange resolve(const Slice& slice, index_t n) {
  const index_t step = std::max(slice.step, -std::numeric_limits<index_t>::max());
  const index_t low = step > 0 ? 0 : -1;  // the border in front of the first element counts
  const index_t high = step > 0 ? n : n - 1;
  const auto clip = [&](std::optional<index_t> end, index_t absent) {
    if (!end) return absent;
    return std::clamp(*end < 0 ? *end + n : *end, low, high);
  };
  const index_t first = clip(slice.start, step > 0 ? low : high);
  const index_t last = clip(slice.stop, step > 0 ? high : low);
  const index_t distance = step > 0 ? last - first : first - last;
  return {first, step, distance > 0 ? (distance - 1) / std::abs(step) + 1 : 0};
}

Slice slice(std::optional<index_t> start, std::optional<index_t> stop, index_t step) {
  return {start, stop, step};
}

Tensor Tensor::index_with(const std::vector<Index>& index) const {
  std::size_t n_named = 0, n_ellipses = 0;
  for (const Index& entry : index) {
    if (std::holds_alternative<EllipsisIndex>(entry)) {
      ++n_ellipses;
    } else if (!std::holds_alternative<NewAxis>(entry)) {
      ++n_named;
    }
  }
  if (n_ellipses > 1) throw ShapeError("[Tensor.index] got several '...', expected at most one");
  if (n_named > rank()) {
    throw ShapeError("[Tensor.index] too many indices: got " + std::to_string(n_named) +
                     ", expected at most " + std::to_string(rank()) + " for shape " +
                     to_string(shape_));
  }
  Indexer indexer(*this, n_named);
  for (const Index& entry : index) std::visit(indexer, entry);
  indexer.finish();
  const Extents& shape = indexer.shape();
  check_layout(shape, shape, "Tensor.index");
  return view_with(dtype_, shape, indexer.strides(), indexer.offset());
}

}  // namespace palimpsest
