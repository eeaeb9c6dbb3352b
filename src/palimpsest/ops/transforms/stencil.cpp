// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/transforms/stencil.hpp"

#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/transforms/stencil_op.hpp"

namespace palimpsest::ops {
namespace {

std::string who_of_stencil(bool adjoint) { return adjoint ? "[stencil_adjoint] " : "[stencil] "; }

void check_stencil(const Stencil& s, bool adjoint) {
  if (!s.taps.empty() && s.step >= 1) return;
  throw ValueError(who_of_stencil(adjoint) + "got " + std::to_string(s.taps.size()) +
                   " taps and step " + std::to_string(s.step) +
                   ", expected at least one and a positive step");
}

}  // namespace

std::string written(const Stencil& value) {
  std::string text = parameter("axis", static_cast<index_t>(value.axis)) + ", taps=(";
  for (const double tap : value.taps) text += written(tap) + ",";
  return text + "), " + parameter("offset", value.offset) + ", " + parameter("step", value.step) +
         ", " + parameter("edge", static_cast<index_t>(value.edge));
}

void read(ParameterText& text, Stencil& value) {
  text.expect("axis=");
  read(text, value.axis);
  check_axis(value.axis);
  text.expect(", taps=(");
  while (!text.take(")")) {
    value.taps.push_back(text.number());
    text.expect(",");
  }
  text.expect(", offset=");
  value.offset = text.integer();
  text.expect(", step=");
  value.step = text.integer();
  text.expect(", edge=");
  const index_t edge = text.integer();
  if (value.taps.empty() || value.step < 1 || edge < 0 || edge > 4) throw FormatError("no filter");
  value.edge = static_cast<StencilEdge>(edge);
}

void StencilOp::check_start(const TensorType& start) const {
  if (stencil_.edge != StencilEdge::periodic) {
    throw ValueError(who_of_stencil(adjoint_) +
                     "start: got edges that are not periodic, expected periodic");
  }
  if (start.dtype == DType::int64 && start.rank() == 0) return;
  const std::string message =
      who_of_stencil(adjoint_) + "start: got " + start.str() + ", expected one int64";
  if (start.dtype != DType::int64) throw DTypeError(message);
  throw ShapeError(message);
}

Apply StencilOp::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, inputs.size() == 2 ? 2 : 1, name());
  const TensorType& x = inputs[0].type();
  if (!is_inexact(x.dtype)) {
    throw DTypeError(who_of_stencil(adjoint_) + "got " + x.str() +
                     ", expected floating or complex data");
  }
  normalize_axis(static_cast<index_t>(stencil_.axis), x.rank(), "stencil");
  if (inputs.size() == 2) check_start(inputs[1].type());
  return node(inputs, {{x.dtype, infer_shapes({}, {&x.shape, 1})[0], x.device}});
}

std::vector<Extents> StencilOp::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  Extents result = inputs[0];
  index_t& n = result[stencil_.axis];
  if (n == kUnknown) return {std::move(result)};
  if (adjoint_) {
    n = checked_multiply(n, stencil_.step);
  } else if (n % stencil_.step == 0) {
    n /= stencil_.step;
  } else {
    throw ShapeError(who_of_stencil(adjoint_) + "got " + to_string(inputs[0]) + ", expected axis " +
                     std::to_string(stencil_.axis) + " divisible by " +
                     std::to_string(stencil_.step));
  }
  return {std::move(result)};
}

std::vector<Variable> StencilOp::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> inputs(apply.inputs().begin(), apply.inputs().end());
  inputs[0] = cotangents[0];
  std::vector<Variable> result(inputs.size());
  result[0] = std::make_shared<StencilOp>(stencil_, !adjoint_)->make_node(inputs).output(0);
  return result;
}

void StencilOp::run(RunContext& context) const {
  const bool has_start = context.inputs().size() == 2;
  const index_t start = has_start ? *static_cast<const index_t*>(context.input(1).data) : 0;
  (adjoint_ ? run_stencil_adjoint : run_stencil)(stencil_, context.input(0), context.output(0),
                                                 start);
}

namespace {

Variable filtered(const Variable& x, Stencil stencil, const Variable& start, bool adjoint) {
  check_stencil(stencil, adjoint);
  std::vector<Variable> inputs{x};
  if (start.defined()) inputs.push_back(start);
  return std::make_shared<StencilOp>(std::move(stencil), adjoint)->make_node(inputs).output(0);
}

}  // namespace

Variable stencil(const Variable& x, Stencil stencil, const Variable& start) {
  return filtered(x, std::move(stencil), start, false);
}

Variable stencil_adjoint(const Variable& y, Stencil stencil, const Variable& start) {
  return filtered(y, std::move(stencil), start, true);
}

void register_ops_of_stencil() { register_type<StencilOp>(); }

}  // namespace palimpsest::ops
