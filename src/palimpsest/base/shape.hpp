// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"
#include "palimpsest/base/small_vector.hpp"

namespace PALIMPSEST_API palimpsest {

/// Largest number of axes of an array.
inline constexpr std::size_t kMaxRank = 16;

/// Numbers of elements per axis.
using Extents = SmallVector<index_t, 8>;
/// Distances between neighbours per axis, in elements; any sign, zero where broadcast.
using Strides = SmallVector<index_t, 8>;
/// Axes; negative ones count from the last.
using Axes = SmallVector<index_t, 8>;

/// Product of the extents. OverflowError beyond 63 bits, ShapeError for a negative extent.
index_t element_count(std::span<const index_t> extents);
/// element_count times the item size, with the same errors.
index_t byte_count(std::span<const index_t> extents, DType dtype);
/// Row-major strides: the last axis is dense.
Strides contiguous_strides(std::span<const index_t> extents);
/// True if extents and strides describe row-major elements without gaps. Axes of one element do not
/// count.
bool is_contiguous(std::span<const index_t> extents, std::span<const index_t> strides);
/// The common extents under broadcasting from the right. ShapeError naming `who` and both shapes.
Extents broadcast_extents(std::span<const index_t> a, std::span<const index_t> b,
                          std::string_view who);
/// The axis counted from the front. ShapeError naming `who` if it is outside the rank.
index_t normalize_axis(index_t axis, std::size_t rank, std::string_view who);
/// The axes sorted, counted from the front. ShapeError naming `who` if one is outside the rank or
/// repeated.
Axes normalize_axes(std::span<const index_t> axes, std::size_t rank, std::string_view who);
/// The strides of a view with other extents on the same elements in the same order, if there is
/// one.
bool view_strides(std::span<const index_t> extents, std::span<const index_t> strides,
                  std::span<const index_t> new_extents, Strides& result);

/// Offsets in elements, relative to the first element, of the lowest and one past the highest
/// element that extents and strides reach. Both are 0 without elements. OverflowError if they or
/// their distance do not fit 63 bits.
struct ReachedRange {
  index_t low = 0, high = 0;
};
ReachedRange reached_range(std::span<const index_t> extents, std::span<const index_t> strides);

/// `(3, 4)`, `(3,)`, `()`.
std::string to_string(std::span<const index_t> values);

[[noreturn]] void throw_size_overflow(index_t a, char operation, index_t b);
/// a * b and a + b, or OverflowError.
inline index_t checked_multiply(index_t a, index_t b) {
  index_t result;
  if (__builtin_mul_overflow(a, b, &result)) [[unlikely]]
    throw_size_overflow(a, '*', b);
  return result;
}
inline index_t checked_add(index_t a, index_t b) {
  index_t result;
  if (__builtin_add_overflow(a, b, &result)) [[unlikely]]
    throw_size_overflow(a, '+', b);
  return result;
}

}  // namespace palimpsest
