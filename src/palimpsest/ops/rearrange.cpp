// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/kernels/pad.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/index.hpp"
#include "palimpsest/ops/rearrange_op.hpp"
#include "palimpsest/ops/shape_ops.hpp"

namespace palimpsest::ops {
namespace {

// `count` elements along an axis from `start` on. The extents of the part live in `extents`.
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

std::string shortest(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

// Is the number one of this dtype's, so that a border is what the caller wrote?
bool fits_dtype(double value, DType dtype) {
  if (is_inexact(dtype)) return true;
  if (is_bool(dtype)) return value == 0 || value == 1;
  const int bits = 8 * static_cast<int>(item_size(dtype)) - (is_unsigned(dtype) ? 0 : 1);
  const double end = std::ldexp(1.0, bits);
  return value < end && value >= (is_unsigned(dtype) ? 0 : -end) && value == std::trunc(value);
}

}  // namespace

// -- pad ---------------------------------------------------------------------------------------

std::string Pad::parameters() const {
  return parameter("before", before_) + ", " + parameter("after", after_) +
         ", value=" + shortest(value_);
}

Extents Pad::result_extents(std::span<const index_t> in) const {
  Extents result = in;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (in[k] != kUnknown) {
      result[k] = checked_add(in[k], checked_add(before_[k], after_[k]));
    }
  }
  return result;
}

Apply Pad::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  if (before_.size() != type.rank() || after_.size() != type.rank()) {
    throw ShapeError("[pad] number of widths: got " + std::to_string(before_.size()) +
                     ", expected one per axis of " + type.str());
  }
  return node(inputs, {{type.dtype, result_extents(type.shape), type.device}});
}

std::vector<Extents> Pad::infer_shapes(const Apply&, std::span<const Extents> inputs) const {
  return {result_extents(inputs[0])};
}

std::vector<Variable> Pad::pullback(const Apply&, std::span<const Variable> cotangents) const {
  std::vector<Index> inner;
  for (std::size_t k = 0; k < before_.size(); ++k) {
    if (after_[k] == 0) {
      inner.emplace_back(slice(before_[k], std::nullopt));
    } else {
      inner.emplace_back(slice(before_[k], -after_[k]));
    }
  }
  return {index(cotangents[0], std::move(inner))};
}

void Pad::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  visit_dtype(out.dtype, [&](auto tag) {
    const auto value = static_cast<typename decltype(tag)::type>(value_);
    run_pad(context.input(0), before_, &value, out);
  });
}

Variable pad(const Variable& x, std::vector<std::pair<index_t, index_t>> widths, double value) {
  Extents before, after;
  for (const auto& [front, back] : widths) {
    if (front < 0 || back < 0) {
      throw ValueError("[pad] width: got (" + std::to_string(front) + ", " + std::to_string(back) +
                       "), expected none negative. Try index to crop");
    }
    before.push_back(front);
    after.push_back(back);
  }
  if (!fits_dtype(value, x.dtype())) {
    throw DTypeError("[pad] value: got " + shortest(value) + ", expected one that fits " +
                     std::string(name_of(x.dtype())));
  }
  const bool nothing = std::all_of(widths.begin(), widths.end(), [](const auto& width) {
    return width.first == 0 && width.second == 0;
  });
  const auto op = std::make_shared<Pad>(std::move(before), std::move(after), value);
  const Variable result = op->make_node({&x, 1}).output(0);
  return nothing ? x : result;
}

// -- roll --------------------------------------------------------------------------------------

std::string Roll::parameters() const {
  return parameter("shift", shift_) + ", " + parameter("axis", static_cast<index_t>(axis_));
}

Apply Roll::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  normalize_axis(static_cast<index_t>(axis_), inputs[0].rank(), "roll");
  return node(inputs, {inputs[0].type()});
}

std::vector<Variable> Roll::pullback(const Apply&, std::span<const Variable> cotangents) const {
  return {roll(cotangents[0], -shift_, static_cast<index_t>(axis_))};
}

void Roll::run(RunContext& context) const {
  const ConstView& in = context.input(0);
  const MutableView& out = context.output(0);
  const index_t n = in.extents[axis_];
  if (n == 0) return;
  const index_t shift = (shift_ % n + n) % n;
  Extents from, to;
  strided_copy(narrowed(in, axis_, 0, n - shift, from), narrowed(out, axis_, shift, n - shift, to));
  strided_copy(narrowed(in, axis_, n - shift, shift, from), narrowed(out, axis_, 0, shift, to));
}

Variable roll(const Variable& x, index_t shift, index_t axis) {
  axis = normalize_axis(axis, x.rank(), "roll");
  const index_t n = x.type().shape[static_cast<std::size_t>(axis)];
  if (n > 0) shift = (shift % n + n) % n;
  if (shift == 0) return x;
  return std::make_shared<Roll>(shift, static_cast<std::size_t>(axis))
      ->make_node({&x, 1})
      .output(0);
}

// -- join --------------------------------------------------------------------------------------

std::string Join::parameters() const { return parameter("axis", static_cast<index_t>(axis_)); }

Apply Join::make_node(std::span<const Variable> inputs) const {
  if (inputs.empty()) throw ValueError("[join] got no parts, expected at least one");
  expect_inputs(inputs, inputs.size(), name());
  TensorType type = inputs[0].type();
  type.device = common_device(inputs, "join");
  normalize_axis(static_cast<index_t>(axis_), type.rank(), "join");
  index_t total = type.shape[axis_];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const TensorType& part = inputs[i].type();
    if (part.dtype != type.dtype) {
      throw DTypeError("[join] dtypes of parts: got " + std::string(name_of(type.dtype)) + " and " +
                       std::string(name_of(part.dtype)));
    }
    if (part.rank() != type.rank()) {
      throw ShapeError("[join] numbers of axes differ: got " + type.str() + " and " + part.str());
    }
    for (std::size_t k = 0; k < type.rank(); ++k) {
      if (k != axis_) type.shape[k] = agreed_extent(type.shape, part.shape, k, "join");
    }
    const index_t more = part.shape[axis_];
    total = total == kUnknown || more == kUnknown ? kUnknown : checked_add(total, more);
  }
  type.shape[axis_] = total;
  return node(inputs, {std::move(type)});
}

std::vector<Extents> Join::infer_shapes(const Apply&, std::span<const Extents> inputs) const {
  Extents result = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (k != axis_) agreed_extent(inputs[0], inputs[i], k, "join");
    }
    result[axis_] = checked_add(result[axis_], inputs[i][axis_]);
  }
  return {std::move(result)};
}

std::vector<Variable> Join::pullback(const Apply& apply,
                                     std::span<const Variable> cotangents) const {
  std::vector<Variable> result;
  index_t start = 0;
  for (const Variable& part : apply.inputs()) {
    const index_t n = part.type().shape[axis_];
    if (n == kUnknown) {
      throw NotSupported("[join] derivative with a part of unknown extent along the axis: got " +
                         part.type().str() + ". Try specify_shape on the part");
    }
    std::vector<Index> where(axis_, Index(all));
    where.emplace_back(slice(start, start + n));
    result.push_back(index(cotangents[0], std::move(where)));
    start += n;
  }
  return result;
}

void Join::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  index_t start = 0;
  for (const ConstView& part : context.inputs()) {
    Extents extents;
    const index_t n = part.extents[axis_];
    strided_copy(part, narrowed(out, axis_, start, n, extents));
    start += n;
  }
}

Variable join(index_t axis, std::span<const Variable> parts) {
  if (parts.empty()) throw ValueError("[join] got no parts, expected at least one");
  axis = normalize_axis(axis, parts[0].rank(), "join");
  if (parts.size() == 1) return parts[0];
  DType dtype = parts[0].dtype();
  for (const Variable& part : parts) dtype = promote(dtype, part.dtype());
  std::vector<Variable> converted;
  for (const Variable& part : parts) converted.push_back(astype(part, dtype));
  return std::make_shared<Join>(static_cast<std::size_t>(axis))->make_node(converted).output(0);
}

}  // namespace palimpsest::ops
