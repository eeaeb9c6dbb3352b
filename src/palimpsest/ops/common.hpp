// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/graph/op.hpp"

// Common parts of the sources of this layer.
namespace palimpsest::ops {

/// ValueError unless there are n inputs, all defined.
void expect_inputs(std::span<const Variable> inputs, std::size_t n, std::string_view who);
/// The operands as variables: numbers take the dtype of a weak number next to the variables among
/// them, which are promoted; numbers alone are values of their own.
std::vector<Variable> resolved(std::span<const Operand> operands);
/// Their extents, as far as the graph knows them.
std::vector<Extents> shapes_of(std::span<const Variable> variables);
bool contains(const Axes& axes, std::size_t axis);
template <class Labels>
bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
/// The device of all inputs. Constants and numbers (rank 0) on the host follow the others.
/// DeviceError when these lie on several.
Device common_device(std::span<const Variable> inputs, std::string_view who);

/// The extent of an axis on which two arrays must agree: the known one of two, kUnknown without
/// one. ShapeError naming `who`, the axis and both shapes.
index_t agreed_extent(std::span<const index_t> a, std::span<const index_t> b, std::size_t axis,
                      std::string_view who);

/// For errors about an axis of one element that the graph does not know to be one.
inline constexpr std::string_view kBroadcastAdvice =
    "Try row(), col() or a 1 in the shape of the input, or specify_shape for a computed value";

/// ShapeError unless axis `i` of a may have as many elements as axis `j` of b.
void expect_same_extent(const Variable& a, std::size_t i, const Variable& b, std::size_t j,
                        std::string_view who);

/// x with new leading axes of one element up to this rank; x itself if it has it. A constant stays
/// a constant.
Variable with_rank(const Variable& x, std::size_t rank);
/// All of the largest rank among them.
std::vector<Variable> with_equal_ranks(std::span<const Variable> inputs);

/// True if several elements of v may lie at one address, because it is a broadcast view. Such a
/// value is never overwritten.
bool may_overlap_itself(const Variable& v);
/// ValueError if it may, naming `who` that is to overwrite v.
void expect_own_elements(const Variable& v, std::string_view who);

/// The view with stride 0 wherever it has one element and `extents` has not; ranks are equal.
/// `strides` is where the strides of the result live.
ConstView stretched(const ConstView& view, std::span<const index_t> extents,
                    std::span<index_t> strides);

/// `count` elements along an axis from `start` on. `extents` is where those of the part live.
template <class View>
View narrowed(const View& view, std::size_t axis, index_t start, index_t count, Extents& extents) {
  extents = view.extents;
  extents[axis] = count;
  View part = view;
  const auto bytes = static_cast<index_t>(item_size(view.dtype));
  using Byte = std::conditional_t<std::is_same_v<View, ConstView>, const std::byte, std::byte>;
  if (count > 0) part.data = static_cast<Byte*>(view.data) + start * view.strides[axis] * bytes;
  part.extents = extents;
  return part;
}

/// The cotangent w of a result in which x entered elementwise, broadcast and converted, as a
/// cotangent of x: summed over the axes along which x was broadcast, the real part if x is real, of
/// x's dtype. Undefined if x is neither floating nor complex. Ranks are equal.
Variable as_cotangent_of(const Variable& x, const Variable& w);

/// The same where x was broadcast from the right to a result of more axes.
Variable unbroadcast_to(const Variable& x, const Variable& w);

/// Placeholder for the cotangent of an input without a derivative: a step that needs its value
/// fails with NotSupported and this text before it runs. w is the cotangent of the result.
Variable refused_cotangent(const Variable& w, const Variable& input, std::string text);

/// `axes=(0, 1)`.
std::string parameter(std::string_view key, std::span<const index_t> values);
std::string parameter(std::string_view key, index_t value);

}  // namespace palimpsest::ops
