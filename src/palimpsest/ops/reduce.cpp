// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/reduce.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/create_op.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/reduce_op.hpp"
#include "palimpsest/ops/shape_op.hpp"
#include "palimpsest/ops/shape_ops.hpp"

namespace palimpsest::ops {
namespace {

Axes axes_of(const Variable& x, const ReduceOptions& options, std::string_view who) {
  if (options.axes) return normalize_axes(*options.axes, x.rank(), who);
  Axes every(x.rank());
  std::iota(every.begin(), every.end(), index_t{0});
  return every;
}

Variable reduce(ReduceOp op, const Variable& x, const ReduceOptions& options) {
  const Axes axes = axes_of(x, options, name_of(op));
  if (axes.empty() && result_dtype(op, x.dtype()) == x.dtype()) return x;
  const Variable y = std::make_shared<Reduce>(op, axes)->make_node({&x, 1}).output(0);
  return options.keepdims ? expand_dims(y, axes) : y;
}

}  // namespace

std::string Reduce::name() const {
  std::string result(name_of(op_));
  result[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(result[0])));
  return result;
}

std::string Reduce::parameters() const { return parameter("axes", axes_); }

Extents Reduce::result_extents(std::span<const index_t> in) const {
  const bool needs_elements = op_ == ReduceOp::max || op_ == ReduceOp::min;
  Extents result;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (std::find(axes_.begin(), axes_.end(), static_cast<index_t>(k)) == axes_.end()) {
      result.push_back(in[k]);
    } else if (needs_elements && in[k] == 0) {
      throw ValueError("[" + std::string(name_of(op_)) + "] axis " + std::to_string(k) +
                       ": got no elements in " + to_string(in) + ", expected at least one");
    }
  }
  return result;
}

Apply Reduce::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  normalize_axes(axes_, type.rank(), name_of(op_));
  return node(inputs, {{result_dtype(op_, type.dtype), result_extents(type.shape), type.device}});
}

std::vector<Extents> Reduce::infer_shapes(const Apply&, std::span<const Extents> inputs) const {
  return {result_extents(inputs[0])};
}

Linearity Reduce::linear_in(const Apply& apply, int) const {
  const bool linear = op_ == ReduceOp::sum && is_inexact(apply.input(0).dtype());
  return linear ? Linearity::complex : Linearity::no;
}

std::vector<Variable> Reduce::pullback(const Apply& apply,
                                       std::span<const Variable> cotangents) const {
  const Variable& x = apply.input(0);
  if (!is_inexact(x.dtype()) || op_ == ReduceOp::any || op_ == ReduceOp::all) return {Variable()};
  const Variable w = broadcast_like(expand_dims(cotangents[0], axes_), x);
  if (op_ == ReduceOp::sum) return {w};
  if (op_ == ReduceOp::prod) return Op::pullback(apply, cotangents);
  // Elements that attain the extremum share its cotangent.
  const Variable y = expand_dims(apply.output(0), axes_);
  const Variable attains = astype(elementwise(ScalarOp::eq, {x, broadcast_like(y, x)}), x.dtype());
  return {w * attains / broadcast_like(sum(attains, {axes_, true}), x)};
}

void Reduce::run(RunContext& context) const {
  run_reduce(op_, context.input(0), axes_, context.output(0));
}

Variable sum(const Variable& x, const ReduceOptions& options) {
  return reduce(ReduceOp::sum, x, options);
}
Variable prod(const Variable& x, const ReduceOptions& options) {
  return reduce(ReduceOp::prod, x, options);
}
Variable max(const Variable& x, const ReduceOptions& options) {
  return reduce(ReduceOp::max, x, options);
}
Variable min(const Variable& x, const ReduceOptions& options) {
  return reduce(ReduceOp::min, x, options);
}
Variable any(const Variable& x, const ReduceOptions& options) {
  return reduce(ReduceOp::any, x, options);
}
Variable all_of(const Variable& x, const ReduceOptions& options) {
  return reduce(ReduceOp::all, x, options);
}

Variable mean(const Variable& x, const ReduceOptions& options) {
  const Axes axes = axes_of(x, options, "mean");
  const Variable summands = is_inexact(x.dtype()) ? x : astype(x, DType::float64);
  const Variable total = sum(summands, {axes, options.keepdims});
  index_t count = 1;
  for (index_t axis : axes) {
    const index_t extent = x.type().shape[static_cast<std::size_t>(axis)];
    if (extent == kUnknown) {
      const DType dtype = real_of(total.dtype());
      return total / std::make_shared<AxisCount>(axes, dtype)->make_node({&x, 1}).output(0);
    }
    count = checked_multiply(count, extent);
  }
  return total / static_cast<double>(count);
}

}  // namespace palimpsest::ops
