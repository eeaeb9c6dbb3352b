// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "palimpsest/tensor/bounded_sum.hpp"
#include "palimpsest/tensor/tensor.hpp"

// Addresses and reaches of memory that exists are far below 2^62, so differences and sums of two of
// them fit 63 bits; what does not is caught in BoundedSum.
namespace palimpsest {
namespace {

// Bytes [low, high) that a tensor reaches.
struct ByteRange {
  index_t low = 0, high = 0;

  bool is_empty() const { return low == high; }
  bool meets(const ByteRange& other) const {
    return !is_empty() && !other.is_empty() && low < other.high && other.low < high;
  }
};

ByteRange byte_range(const Tensor& t, index_t start) {
  const ReachedRange range = reached_range(t.shape(), t.strides());
  const auto item = static_cast<index_t>(item_size(t.dtype()));
  if (range.low == range.high) return {};
  return {start + (t.offset() + range.low) * item, start + (t.offset() + range.high) * item};
}

struct RangePair {
  ByteRange a, b;
};

// Both ranges on one scale. Lazy clones never alias, although they may show the same bytes; apart
// from them only foreign memory can lie in two storages.
RangePair byte_ranges(const Tensor& a, const Tensor& b) {
  if (shares_storage(a, b)) return {byte_range(a, 0), byte_range(b, 0)};
  if (a.storage().shares_data(b.storage()) || a.device() != b.device()) return {};
  const auto address = [](const Tensor& t) {
    return static_cast<index_t>(reinterpret_cast<std::uintptr_t>(t.storage().data()));
  };
  return {byte_range(a, address(a)), byte_range(b, address(b))};
}

void add_axes(BoundedSum& sum, const Tensor& t) {
  const auto item = static_cast<index_t>(item_size(t.dtype()));
  for (std::size_t axis = 0; axis < t.rank(); ++axis) {
    // Strides of axes of one element mean nothing, and their products need not fit.
    if (t.shape()[axis] == 1) continue;
    sum.add(std::abs(t.strides()[axis]) * item, t.shape()[axis] - 1);
  }
  sum.add(1, item - 1);
}

struct Axis {
  index_t step, extent;
};

}  // namespace

bool may_share_memory(const Tensor& a, const Tensor& b) {
  const RangePair ranges = byte_ranges(a, b);
  return ranges.a.meets(ranges.b);
}

// With all steps made positive, a byte of a is low_a + S and one of b is high_b - 1 - T, where S
// and T are bounded sums over axes and bytes of an item: they meet where S + T = high_b - 1 -
// low_a.
bool overlaps(const Tensor& a, const Tensor& b, bool* exact) {
  if (exact != nullptr) *exact = true;
  const RangePair ranges = byte_ranges(a, b);
  if (!ranges.a.meets(ranges.b)) return false;
  BoundedSum sum;
  add_axes(sum, a);
  add_axes(sum, b);
  const BoundedSum::Answer answer = sum.solve(ranges.b.high - 1 - ranges.a.low);
  if (answer == BoundedSum::Answer::unknown && exact != nullptr) *exact = false;
  return answer != BoundedSum::Answer::no;
}

// Two different indices hit one element iff the sum of step_k d_k is 0 for some differences d that
// are not all 0. The first d that is not 0 may be taken positive: one bounded sum for each first.
bool has_internal_overlap(const Tensor& t) {
  SmallVector<Axis, kMaxRank> axes;
  if (t.numel() == 0) return false;
  for (std::size_t axis = 0; axis < t.rank(); ++axis) {
    const index_t extent = t.shape()[axis];
    if (extent == 1) continue;
    if (t.strides()[axis] == 0) return true;
    axes.push_back({std::abs(t.strides()[axis]), extent});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.step > b.step; });
  index_t reach = 0;
  bool is_nested = true;
  for (std::size_t k = axes.size(); k-- > 0;) {
    is_nested = is_nested && axes[k].step > reach;
    reach = checked_add(reach, checked_multiply(axes[k].step, axes[k].extent - 1));
  }
  if (is_nested) return false;
  for (std::size_t first = 0; first < axes.size(); ++first) {
    BoundedSum sum;
    sum.add(axes[first].step, axes[first].extent - 2);
    index_t target = -axes[first].step;
    for (std::size_t k = first + 1; k < axes.size(); ++k) {
      sum.add(axes[k].step, 2 * (axes[k].extent - 1));
      target += axes[k].step * (axes[k].extent - 1);
    }
    if (sum.solve(target) != BoundedSum::Answer::no) return true;
  }
  return false;
}

}  // namespace palimpsest
