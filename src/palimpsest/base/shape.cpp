// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/shape.hpp"

#include <algorithm>

namespace palimpsest {

void throw_size_overflow(index_t a, char operation, index_t b) {
  throw OverflowError("[size] " + std::to_string(a) + ' ' + operation + ' ' + std::to_string(b) +
                      " does not fit 63 bits");
}

index_t element_count(std::span<const index_t> extents) {
  for (index_t extent : extents) {
    if (extent < 0) {
      throw ShapeError("[shape] got " + to_string(extents) + ", expected no negative extent");
    }
  }
  // A zero makes the product zero, even if the product of the others overflows.
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;
  index_t count = 1;
  for (index_t extent : extents) count = checked_multiply(count, extent);
  return count;
}

index_t byte_count(std::span<const index_t> extents, DType dtype) {
  return checked_multiply(element_count(extents), static_cast<index_t>(item_size(dtype)));
}

Strides contiguous_strides(std::span<const index_t> extents) {
  Strides strides(extents.size());
  index_t stride = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride = checked_multiply(stride, std::max<index_t>(extents[i], 1));
  }
  return strides;
}

bool is_contiguous(std::span<const index_t> extents, std::span<const index_t> strides) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return true;
  index_t expected = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (extents[i] != 1 && strides[i] != expected) return false;
    expected *= extents[i];
  }
  return true;
}

Extents broadcast_extents(std::span<const index_t> a, std::span<const index_t> b,
                          std::string_view who) {
  const std::size_t rank = std::max(a.size(), b.size());
  Extents result(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const index_t ea = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    const index_t eb = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (ea != eb && ea != 1 && eb != 1) {
      throw ShapeError("[" + std::string(who) + "] shapes do not broadcast on axis " +
                       std::to_string(i) + ": got " + to_string(a) + " and " + to_string(b));
    }
    result[i] = ea == 1 ? eb : ea;
  }
  return result;
}

index_t normalize_axis(index_t axis, std::size_t rank, std::string_view who) {
  const auto n = static_cast<index_t>(rank);
  if (axis < -n || axis >= n) {
    const std::string expected =
        n == 0 ? "none, as the rank is 0" : std::to_string(-n) + ".." + std::to_string(n - 1);
    throw ShapeError("[" + std::string(who) + "] axis out of range: got " + std::to_string(axis) +
                     ", expected " + expected);
  }
  return axis < 0 ? axis + n : axis;
}

Axes normalize_axes(std::span<const index_t> axes, std::size_t rank, std::string_view who) {
  Axes result;
  for (index_t axis : axes) result.push_back(normalize_axis(axis, rank, who));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    throw ShapeError("[" + std::string(who) + "] repeated axis: got " + to_string(axes));
  }
  return result;
}

// Walks both shapes from the last axis and pairs runs of axes with equal element counts. Inside a
// run the old axes must merge into one evenly strided axis, which the new ones then divide.
bool view_strides(std::span<const index_t> extents, std::span<const index_t> strides,
                  std::span<const index_t> new_extents, Strides& result) {
  const index_t count = element_count(extents);
  result = contiguous_strides(new_extents);
  if (count != element_count(new_extents)) return false;
  if (count == 0) return true;
  Extents old_extents;
  Strides old_strides;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    old_extents.push_back(extents[i]);
    old_strides.push_back(strides[i]);
  }
  std::size_t o = old_extents.size(), n = new_extents.size();
  while (o > 0) {
    --o;
    const std::size_t run_end = n;
    index_t stride = old_strides[o];
    index_t old_count = old_extents[o], new_count = 1;
    while (old_count != new_count) {
      if (new_count < old_count) {
        new_count *= new_extents[--n];
      } else {
        --o;
        if (old_strides[o] != old_strides[o + 1] * old_extents[o + 1]) return false;
        old_count *= old_extents[o];
      }
    }
    for (std::size_t i = run_end; i-- > n;) {
      result[i] = stride;
      stride *= new_extents[i];
    }
  }
  return true;
}

ReachedRange reached_range(std::span<const index_t> extents, std::span<const index_t> strides) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return {0, 0};
  ReachedRange range{0, 1};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const index_t reach = checked_multiply(extents[i] - 1, strides[i]);
    index_t& end = reach < 0 ? range.low : range.high;
    end = checked_add(end, reach);
  }
  checked_add(range.high, checked_multiply(range.low, -1));  // their distance fits, too
  return range;
}

std::string to_string(std::span<const index_t> values) {
  std::string text = "(";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(values[i]);
  }
  if (values.size() == 1) text += ",";
  return text + ")";
}

}  // namespace palimpsest
