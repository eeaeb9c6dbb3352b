// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "palimpsest/kernels/arrays/pad.hpp"
#include "palimpsest/kernels/arrays/roll.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"

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

std::vector<Extents> Pad::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {result_extents(inputs[0])};
}

std::vector<Variable> Pad::pullback(const Apply&, CotangentSpan cotangents) const {
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
    const index_t border = checked_add(before_[k], after_[k]);
    if (in[k] == kUnknown || border == 0) continue;
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

std::vector<Extents> PadAround::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {result_extents(inputs[0])};
}

std::size_t PadAround::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  return adjoint_ ? static_cast<std::size_t>(byte_count(inputs[0].extents, dtype_)) : 0;
}

std::vector<Variable> PadAround::pullback(const Apply&, CotangentSpan cotangents) const {
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

namespace {

index_t modulo(index_t shift, index_t n) { return (shift % n + n) % n; }

// Words of a roll by half, in the order of the values.
constexpr std::string_view kHalves[] = {"back by half, ", "", "by half, "};

}  // namespace

index_t AxisRoll::shift_along(index_t n) const {
  return modulo(modulo(shift, n) + static_cast<index_t>(half) * (n / 2), n);
}

// `shift=2, axis=0, by half, shift=0, axis=1`: for one axis that is the text of version 0.1.
std::string written(const AxisRolls& rolls) {
  std::string text;
  for (const AxisRoll& roll : rolls) {
    if (!text.empty()) text += ", ";
    text += kHalves[static_cast<int>(roll.half) + 1];
    text += "shift=" + std::to_string(roll.shift) + ", axis=" + std::to_string(roll.axis);
  }
  return text;
}

void read(ParameterText& text, AxisRolls& rolls) {
  do {
    AxisRoll roll{};
    if (text.take(kHalves[0])) roll.half = AxisRoll::Half::back;
    if (text.take(kHalves[2])) roll.half = AxisRoll::Half::there;
    text.expect("shift=");
    roll.shift = text.integer();
    text.expect(", axis=");
    read(text, roll.axis);
    check_axis(roll.axis);
    if (!rolls.empty() && roll.axis <= rolls.back().axis) {
      throw FormatError("axes that are not sorted");
    }
    rolls.push_back(roll);
  } while (text.take(", "));
}

Apply Roll::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  for (const AxisRoll& roll : rolls_) {
    normalize_axis(static_cast<index_t>(roll.axis), inputs[0].rank(), "roll");
  }
  return node(inputs, {inputs[0].type()});
}

std::vector<Variable> Roll::pullback(const Apply&, CotangentSpan cotangents) const {
  AxisRolls back = rolls_;
  for (AxisRoll& roll : back) {
    roll.shift = checked_multiply(roll.shift, -1);
    roll.half = static_cast<AxisRoll::Half>(-static_cast<int>(roll.half));
  }
  return {rolled(cotangents[0], std::move(back))};
}

void Roll::run(RunContext& context) const {
  const ConstView& in = context.input(0);
  Extents shifts(in.rank());
  for (const AxisRoll& roll : rolls_) {
    const index_t n = in.extents[roll.axis];
    if (n > 0) shifts[roll.axis] = roll.shift_along(n);
  }
  run_roll(in, shifts, context.output(0));
}

Variable rolled(const Variable& x, AxisRolls rolls) {
  for (AxisRoll& roll : rolls) {
    const index_t n = x.type().shape[roll.axis];
    if (n > 0) roll.shift = modulo(roll.shift, n);
  }
  std::erase_if(rolls, [](const AxisRoll& roll) { return roll.does_nothing(); });
  if (rolls.empty()) return x;
  return std::make_shared<Roll>(std::move(rolls))->make_node({&x, 1}).output(0);
}

Variable roll(const Variable& x, index_t shift, index_t axis) {
  return roll(x, std::vector{shift}, Axes{axis});
}

Variable roll(const Variable& x, const std::vector<index_t>& shifts, const Axes& axes) {
  if (shifts.size() != axes.size()) {
    throw ValueError("[roll] number of shifts: got " + std::to_string(shifts.size()) +
                     ", expected one per axis, " + std::to_string(axes.size()));
  }
  AxisRolls rolls;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) rolls.push_back({.axis = axis});
  for (std::size_t k = 0; k < shifts.size(); ++k) {
    AxisRoll& roll = rolls[static_cast<std::size_t>(normalize_axis(axes[k], x.rank(), "roll"))];
    const index_t n = x.type().shape[roll.axis];
    roll.shift = n > 0 ? roll.shift + modulo(shifts[k], n) : checked_add(roll.shift, shifts[k]);
  }
  return rolled(x, std::move(rolls));
}

void register_ops_of_rearrange() {
  register_type<Pad>();
  register_type<PadAround>();
  register_type<Roll>();
}

}  // namespace palimpsest::ops
