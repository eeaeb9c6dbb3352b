// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/region.hpp"

#include <algorithm>
#include <cstdlib>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/tensor/bounded_sum.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kMostAxes = 8;

// An axis of the middle array, in bytes: extent, stride in the dense middle, stride in the parent.
struct Axis {
  index_t extent, dense, bytes;
};

// The axes of an array of these strides, the bytes of an item as the last one; neighbours that lie
// in one another without gap count as one.
std::vector<Axis> axes_in_bytes(std::span<const Region::Stride> strides, index_t width) {
  std::vector<Axis> axes{{width, 1, 1}};
  index_t dense = width;
  for (std::size_t k = strides.size(); k-- > 0;) {
    const Region::Stride& s = strides[k];
    Axis& inner = axes.back();
    if (s.extent != 1) {
      if (s.bytes == inner.extent * inner.bytes && dense == inner.extent * inner.dense) {
        inner.extent *= s.extent;
      } else {
        axes.push_back({s.extent, dense, s.bytes});
      }
    }
    dense *= s.extent;
  }
  std::reverse(axes.begin(), axes.end());
  return axes;
}

// The bytes of a lattice as low + sum of bounded nonnegative steps.
struct Bytes {
  index_t low = 0, high = 0;  // [low, high)
};

Bytes add_terms(BoundedSum& sum, index_t offset, std::span<const Region::Stride> strides,
                index_t width) {
  Bytes bytes{offset, offset + width};
  for (const Region::Stride& s : strides) {
    if (s.extent == 1) continue;
    (s.bytes < 0 ? bytes.low : bytes.high) += s.bytes * (s.extent - 1);
    sum.add(std::abs(s.bytes), s.extent - 1);
  }
  sum.add(1, width - 1);
  return bytes;
}

bool lattices_meet(index_t offset_a, std::span<const Region::Stride> a, index_t width_a,
                   index_t offset_b, std::span<const Region::Stride> b, index_t width_b) {
  if (a.size() > kMostAxes || b.size() > kMostAxes) return true;
  BoundedSum sum;
  const Bytes x = add_terms(sum, offset_a, a, width_a), y = add_terms(sum, offset_b, b, width_b);
  if (x.low >= y.high || y.low >= x.high) return false;
  return sum.solve(y.high - 1 - x.low) != BoundedSum::Answer::no;
}

bool ranges_meet(const Region::Range& a, const Region::Range& b) {
  if (a.count == kUnknown || b.count == kUnknown) return true;
  const Region::Stride x{a.count, a.step}, y{b.count, b.step};
  return lattices_meet(a.start, {&x, 1}, 1, b.start, {&y, 1}, 1);
}

bool range_covers(const Region::Range& a, const Region::Range& b) {
  if (a.count == kUnknown) return true;
  if (b.count == kUnknown) return false;
  const auto holds = [&](index_t position) {
    const index_t distance = position - a.start;
    if (a.count == 1) return distance == 0;
    return distance % a.step == 0 && distance / a.step >= 0 && distance / a.step < a.count;
  };
  const bool in_step = b.count <= 1 || (a.count > 1 && b.step % a.step == 0);
  return in_step && holds(b.start) && holds(b.start + b.step * (b.count - 1));
}

}  // namespace

Region Region::box(std::vector<Range> axes, int child_rank) {
  Region r(Kind::box);
  r.ranges_ = std::move(axes);
  r.child_rank_ = child_rank;
  return r;
}

Region Region::lattice(index_t byte_offset, std::vector<Stride> axes, index_t width) {
  Region r(Kind::lattice);
  r.offset_ = byte_offset;
  r.strides_ = std::move(axes);
  r.width_ = width;
  return r;
}

Region Region::of(const Layout& layout) {
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  std::vector<Stride> axes;
  for (std::size_t k = 0; k < layout.extents.size(); ++k) {
    axes.push_back({layout.extents[k], layout.strides[k] * item});
  }
  return lattice(layout.byte_offset, std::move(axes), item);
}

bool Region::is_empty() const {
  return std::any_of(ranges_.begin(), ranges_.end(), [](const Range& r) { return r.count == 0; }) ||
         std::any_of(strides_.begin(), strides_.end(),
                     [](const Stride& s) { return s.extent == 0; });
}

// A box of a parent of known extents, as a lattice; nothing where the box does not say which
// element is which.
std::optional<Region> Region::as_lattice(std::span<const index_t> parent, index_t item) const {
  if (kind_ == Kind::lattice) return *this;
  if (kind_ != Kind::box || parent.size() != ranges_.size()) return {};
  std::vector<Stride> axes(static_cast<std::size_t>(child_rank_));
  index_t offset = 0, dense = item;
  for (std::size_t k = parent.size(); k-- > 0;) {
    const Range& r = ranges_[k];
    if (parent[k] == kUnknown) return {};
    const index_t count = r.count == kUnknown ? parent[k] : r.count;
    if (r.child_axis >= 0) {
      axes[static_cast<std::size_t>(r.child_axis)] = {count, r.step * dense};
    } else if (count != 1) {
      return {};
    }
    offset += r.start * dense;
    dense *= parent[k];
  }
  return lattice(offset, std::move(axes), item);
}

Region Region::box_within_box(const Region& middle) const {
  std::vector<Range> axes;
  for (const Range& outer : middle.ranges_) {
    if (outer.child_axis < 0) {
      axes.push_back(outer);
      continue;
    }
    const auto k = static_cast<std::size_t>(outer.child_axis);
    if (k >= ranges_.size()) return unknown();
    const Range& inner = ranges_[k];
    if (outer.count == kUnknown) {
      axes.push_back(inner);
    } else if (inner.count == kUnknown) {
      axes.push_back({outer.start, outer.step, outer.count, inner.child_axis});
    } else {
      const index_t last = inner.start + inner.step * (inner.count - 1);
      const bool is_inside =
          std::min(inner.start, last) >= 0 && std::max(inner.start, last) < outer.count;
      if (!is_inside && inner.count > 0) return unknown();
      axes.push_back({outer.start + outer.step * inner.start, outer.step * inner.step, inner.count,
                      inner.child_axis});
    }
  }
  return box(std::move(axes), child_rank_);
}

// Writes offset and strides as numbers of the mixed radix in which the middle array counts its
// bytes. Where no sum of them carries, each digit moves along one axis, and the strides of the
// parent take the place of the dense ones.
Region Region::lattice_within_lattice(const Region& middle) const {
  const std::vector<Axis> axes = axes_in_bytes(middle.strides_, middle.width_);
  std::vector<index_t> low(axes.size()), high(axes.size());
  const auto spread = [&](index_t bytes, index_t times) {
    index_t moved = 0, rest = std::abs(bytes);
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const index_t digit = (rest / axes[k].dense) * (bytes < 0 ? -1 : 1);
      rest %= axes[k].dense;
      moved += digit * axes[k].bytes;
      (digit < 0 ? low : high)[k] += digit * times;
    }
    return moved;
  };
  const index_t offset = middle.offset_ + spread(offset_, 1);
  low = high;
  std::vector<Stride> strides;
  for (const Stride& s : strides_) {
    strides.push_back({s.extent, s.extent == 1 ? 0 : spread(s.bytes, s.extent - 1)});
  }
  high.back() += width_ - 1;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (low[k] < 0 || high[k] >= axes[k].extent) return unknown();
  }
  return lattice(offset, std::move(strides), width_);
}

Region Region::within(const Region& middle, const TensorType& parent) const {
  if (middle.is_empty() || is_whole()) return middle;
  if (middle.is_whole() || is_empty()) return *this;
  if (middle.is_bound_) return middle;
  Region result = is_unknown() ? unknown() : composed(middle, parent);
  const bool is_known = !result.is_unknown();
  if (!is_known) result = middle;
  result.is_bound_ = is_bound_ || !is_known;
  return result;
}

// Unknown where it cannot be said.
Region Region::composed(const Region& middle, const TensorType& parent) const {
  if (middle.is_box() && is_box()) return box_within_box(middle);
  const auto item = static_cast<index_t>(item_size(parent.dtype));
  const std::optional<Region> outer = middle.as_lattice(parent.shape, item);
  if (!outer) return unknown();
  Extents extents;
  for (const Stride& s : outer->strides_) extents.push_back(s.extent);
  const std::optional<Region> inner = as_lattice(extents, outer->width_);
  return inner ? inner->lattice_within_lattice(*outer) : unknown();
}

bool Region::meets(const Region& other, const TensorType& parent) const {
  // Nothing is read or written of an array without elements. All that asks comes here.
  const bool has_elements =
      std::find(parent.shape.begin(), parent.shape.end(), 0) == parent.shape.end();
  if (!has_elements || is_empty() || other.is_empty()) return false;
  if (is_whole() || is_unknown() || other.is_whole() || other.is_unknown()) return true;
  if (is_box() && other.is_box()) {
    for (std::size_t k = 0; k < std::min(ranges_.size(), other.ranges_.size()); ++k) {
      if (!ranges_meet(ranges_[k], other.ranges_[k])) return false;
    }
    return true;
  }
  const auto item = static_cast<index_t>(item_size(parent.dtype));
  const std::optional<Region> a = as_lattice(parent.shape, item);
  const std::optional<Region> b = other.as_lattice(parent.shape, item);
  if (!a || !b) return true;
  return lattices_meet(a->offset_, a->strides_, a->width_, b->offset_, b->strides_, b->width_);
}

bool Region::covers(const Region& other) const {
  if (is_whole() || is_unknown()) return true;
  if (is_bound_) return false;
  if (*this == other) return true;
  if (!is_box() || !other.is_box() || ranges_.size() != other.ranges_.size()) return false;
  for (std::size_t k = 0; k < ranges_.size(); ++k) {
    if (!range_covers(ranges_[k], other.ranges_[k])) return false;
  }
  return true;
}

std::optional<std::pair<index_t, index_t>> Region::bounds(std::size_t axis) const {
  if (kind_ == Kind::lattice && axis == kBytes) {
    index_t first = offset_, last = offset_ + width_ - 1;
    for (const Stride& s : strides_) {
      (s.bytes < 0 ? first : last) += s.bytes * (std::max<index_t>(s.extent, 1) - 1);
    }
    return std::pair(first, last);
  }
  if (!is_box() || axis >= ranges_.size() || ranges_[axis].count == kUnknown) return {};
  const Range& r = ranges_[axis];
  return std::minmax({r.start, r.start + r.step * (r.count - 1)});
}

// start:stop:step, as one would write it as an index.
static std::string as_slice(const Region::Range& r) {
  if (r.count == kUnknown) return r.step == 1 ? ":" : "::" + std::to_string(r.step);
  const index_t stop = r.start + r.count * r.step;
  std::string text = std::to_string(r.start) + ":";
  if (stop >= 0) text += std::to_string(stop);
  return r.step == 1 ? text : text + ":" + std::to_string(r.step);
}

std::string Region::str() const {
  if (is_whole()) return "whole";
  if (is_unknown()) return "unknown";
  std::string text;
  if (is_box()) {
    for (const Range& r : ranges_) text += (text.empty() ? "[" : ", ") + as_slice(r);
    return text + "]";
  }
  text = "bytes " + std::to_string(offset_) + " + (";
  for (std::size_t k = 0; k < strides_.size(); ++k) {
    text += (k > 0 ? ", " : "") + std::to_string(strides_[k].extent) + " x " +
            std::to_string(strides_[k].bytes);
  }
  return text + ") of " + std::to_string(width_);
}

}  // namespace palimpsest
