// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/kernels/arrays/pad.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest::ops {
namespace {

// True if the dtype represents the number, so that a border has the caller's value.
bool fits_dtype(double value, DType dtype) {
  if (is_inexact(dtype)) return true;
  if (is_bool(dtype)) return value == 0 || value == 1;
  const int bits = 8 * static_cast<int>(item_size(dtype)) - (is_unsigned(dtype) ? 0 : 1);
  const double end = std::ldexp(1.0, bits);
  return value < end && value >= (is_unsigned(dtype) ? 0 : -end) && value == std::trunc(value);
}

}  // namespace

// -- pad ---------------------------------------------------------------------------------------

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

namespace {

// The widths apart.
void take_apart(const PadWidths& widths, Extents& before, Extents& after) {
  for (const auto& [front, back] : widths) {
    if (front < 0 || back < 0) {
      throw ValueError("[pad] width: got (" + std::to_string(front) + ", " + std::to_string(back) +
                       "), expected none negative. Try index to crop");
    }
    before.push_back(front);
    after.push_back(back);
  }
}

bool is_nothing(const PadWidths& widths) {
  return std::all_of(widths.begin(), widths.end(),
                     [](const auto& width) { return width.first == 0 && width.second == 0; });
}

}  // namespace

Variable pad(const Variable& x, PadWidths widths, double value) {
  Extents before, after;
  take_apart(widths, before, after);
  if (!fits_dtype(value, x.dtype())) {
    throw DTypeError("[pad] value: got " + written(value) + ", expected one that fits " +
                     std::string(name_of(x.dtype())));
  }
  const auto op = std::make_shared<Pad>(std::move(before), std::move(after), value);
  const Variable result = op->make_node({&x, 1}).output(0);
  return is_nothing(widths) ? x : result;
}

PadAround::PadAround(Extents before, Extents after, PadRule rule, DType dtype, bool adjoint)
    : before_(std::move(before)),
      after_(std::move(after)),
      rule_(rule),
      dtype_(dtype),
      adjoint_(adjoint) {
  const DType operands[] = {dtype, dtype};
  if (adjoint) sum_ = ElementwiseProgram(ScalarOp::add, operands);
}

Extents PadAround::result_extents(std::span<const index_t> in) const {
  Extents result = in;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (in[k] == kUnknown) continue;
    const index_t border = checked_add(before_[k], after_[k]);
    result[k] = checked_add(in[k], adjoint_ ? -border : border);
    if ((adjoint_ ? result[k] : in[k]) < 1) {
      throw ShapeError("[pad] axis " + std::to_string(k) + ": got no elements in " + to_string(in) +
                       ", expected at least one to put around");
    }
  }
  return result;
}

Apply PadAround::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  if (before_.size() != type.rank() || after_.size() != type.rank()) {
    throw ShapeError("[pad] number of widths: got " + std::to_string(before_.size()) +
                     ", expected one per axis of " + type.str());
  }
  if (type.dtype != dtype_) {
    throw DTypeError("[" + name() + "] got " + type.str() + ", expected " +
                     std::string(name_of(dtype_)));
  }
  return node(inputs, {{type.dtype, result_extents(type.shape), type.device}});
}

std::vector<Extents> PadAround::infer_shapes(const Apply&, std::span<const Extents> inputs) const {
  return {result_extents(inputs[0])};
}

std::size_t PadAround::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  return adjoint_ ? static_cast<std::size_t>(byte_count(inputs[0].extents, dtype_)) : 0;
}

std::vector<Variable> PadAround::pullback(const Apply&,
                                          std::span<const Variable> cotangents) const {
  if (!is_inexact(dtype_)) return {Variable()};
  return {std::make_shared<PadAround>(before_, after_, rule_, dtype_, !adjoint_)
              ->make_node({&cotangents[0], 1})
              .output(0)};
}

void PadAround::run(RunContext& context) const {
  if (adjoint_) {
    run_fold(context.input(0), before_, rule_, sum_, context.output(0), context.scratch());
  } else {
    run_pad_around(context.input(0), before_, rule_, context.output(0));
  }
}

Variable pad(const Variable& x, PadWidths widths, PadMode mode) {
  Extents before, after;
  take_apart(widths, before, after);
  const PadRule rule = mode == PadMode::edge   ? PadRule::edge
                       : mode == PadMode::wrap ? PadRule::wrap
                                               : PadRule::reflect;
  const auto op = std::make_shared<PadAround>(std::move(before), std::move(after), rule, x.dtype());
  const Variable result = op->make_node({&x, 1}).output(0);
  return is_nothing(widths) ? x : result;
}

// -- roll --------------------------------------------------------------------------------------

index_t Roll::shift_for(index_t n) const {
  switch (half_) {
    case Half::there:
      return n / 2;
    case Half::back:
      return n - n / 2;
    case Half::no:
      break;
  }
  return (shift_ % n + n) % n;
}

Apply Roll::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  normalize_axis(static_cast<index_t>(axis_), inputs[0].rank(), "roll");
  return node(inputs, {inputs[0].type()});
}

std::vector<Variable> Roll::pullback(const Apply&, std::span<const Variable> cotangents) const {
  if (half_ == Half::no) return {roll(cotangents[0], -shift_, static_cast<index_t>(axis_))};
  const Half other = half_ == Half::there ? Half::back : Half::there;
  return {std::make_shared<Roll>(other, 0, axis_)->make_node({&cotangents[0], 1}).output(0)};
}

void Roll::run(RunContext& context) const {
  const ConstView& in = context.input(0);
  const MutableView& out = context.output(0);
  const index_t n = in.extents[axis_];
  if (n == 0) return;
  const index_t shift = shift_for(n) % n;
  Extents from, to;
  run_copy(narrowed(in, axis_, 0, n - shift, from), narrowed(out, axis_, shift, n - shift, to));
  run_copy(narrowed(in, axis_, n - shift, shift, from), narrowed(out, axis_, 0, shift, to));
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

Variable roll(const Variable& x, const std::vector<index_t>& shifts, const Axes& axes) {
  if (shifts.size() != axes.size()) {
    throw ValueError("[roll] number of shifts: got " + std::to_string(shifts.size()) +
                     ", expected one per axis, " + std::to_string(axes.size()));
  }
  Variable result = x;
  for (std::size_t k = 0; k < shifts.size(); ++k) result = roll(result, shifts[k], axes[k]);
  return result;
}

void register_ops_of_rearrange() {
  register_type<Pad>();
  register_type<PadAround>();
  register_type<Roll>();
}

}  // namespace palimpsest::ops
