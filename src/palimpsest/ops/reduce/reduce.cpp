// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/reduce/reduce.hpp"

#include <limits>
#include <numeric>

#include "palimpsest/kernels/reduce/arg_reduce.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"

namespace palimpsest::ops {
namespace {

// Extents without the axes. ValueError if one of these is empty although an element is needed.
Extents without_axes(std::span<const index_t> in, const Axes& axes, bool needs_elements,
                     std::string_view who) {
  Extents result;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (std::find(axes.begin(), axes.end(), static_cast<index_t>(k)) == axes.end()) {
      result.push_back(in[k]);
    } else if (needs_elements && in[k] == 0) {
      throw ValueError("[" + std::string(who) + "] axis " + std::to_string(k) +
                       ": got no elements in " + to_string(in) + ", expected at least one");
    }
  }
  return result;
}

Variable reduce(ReduceOp op, const Variable& x, const ReduceOptions& options) {
  const Axes axes = reduced_axes(x, options.axes, name_of(op));
  if (axes.empty() && result_dtype(op, x.dtype()) == x.dtype()) return x;
  const Variable y = std::make_shared<Reduce>(op, axes)->make_node({&x, 1}).output(0);
  return options.keepdims ? expand_dims(y, axes) : y;
}

// The product of the other elements: of those that are not 0, divided by the element itself; only
// where there is one 0 it has a share, which is the product of the others.
Variable prod_cotangent(const Variable& x, const Axes& axes, const Variable& w) {
  const Variable is_zero = eq(x, 0), factors = where(is_zero, 1, x);
  const Variable n_zeros = broadcast_like(sum(is_zero, {axes, true}), x);
  const Variable product = broadcast_like(prod(factors, {axes, true}), x);
  const Variable others = where(le(n_zeros, is_zero), product / factors, 0);
  return w * conj(others);
}

}  // namespace

Axes reduced_axes(const Variable& x, const AxesArgument& axes, std::string_view who) {
  if (axes.value()) return normalize_axes(*axes.value(), x.rank(), who);
  Axes every(x.rank());
  std::iota(every.begin(), every.end(), index_t{0});
  return every;
}

Extents Reduce::result_extents(std::span<const index_t> in) const {
  const bool is_extremum = op_ == ReduceOp::max || op_ == ReduceOp::min;
  return without_axes(in, axes_, is_extremum && !allows_none_, name_of(op_));
}

Apply Reduce::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  normalize_axes(axes_, type.rank(), name_of(op_));
  if (allows_none_ && !is_floating(type.dtype)) {
    throw DTypeError("[" + name() + "] got " + std::string(name_of(type.dtype)) +
                     ", expected floating numbers for the extremum of no elements");
  }
  return node(inputs, {{result_dtype(op_, type.dtype), result_extents(type.shape), type.device}});
}

std::vector<Extents> Reduce::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {result_extents(inputs[0])};
}

Linearity Reduce::linear_in(const Apply& apply, int) const {
  const bool linear = op_ == ReduceOp::sum && is_inexact(apply.input(0).dtype());
  return linear ? Linearity::complex : Linearity::no;
}

std::vector<Variable> Reduce::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable& x = apply.input(0);
  if (!is_inexact(x.dtype()) || op_ == ReduceOp::any || op_ == ReduceOp::all) return {Variable()};
  const Variable w = broadcast_like(expand_dims(cotangents[0], axes_), x);
  if (op_ == ReduceOp::sum) return {w};
  if (op_ == ReduceOp::prod) return {prod_cotangent(x, axes_, w)};
  // Elements that attain the extremum share its cotangent.
  const Variable y = expand_dims(apply.output(0), axes_);
  const Variable attains = astype(elementwise(ScalarOp::eq, {x, broadcast_like(y, x)}), x.dtype());
  return {w * attains / broadcast_like(sum(attains, {axes_, true}), x)};
}

bool Reduce::runs_on_none(std::span<const index_t> extents, const MutableView& out) const {
  if (!allows_none_ || element_count(extents) != 0) return false;
  const double limit = std::numeric_limits<double>::infinity();
  const double value = op_ == ReduceOp::max ? -limit : limit;
  const Strides still(out.rank());
  strided_copy({&value, DType::float64, out.extents, still}, out);
  return true;
}

void Reduce::run(RunContext& context) const {
  if (runs_on_none(context.input(0).extents, context.output(0))) return;
  run_reduce(op_, context.input(0), axes_, context.output(0));
}

// -- of elementwise results ----------------------------------------------------------------------

FusedReduce::FusedReduce(ElementwiseProgram program, ReduceOp op, Axes axes, bool allows_none)
    : elementwise_(std::make_shared<Elementwise>(std::move(program))),
      reduce_(std::make_shared<Reduce>(op, std::move(axes), allows_none)) {
  if (elementwise_->program().outputs().size() != 1 || elementwise_->program().n_inputs() == 0) {
    throw ValueError("[FusedReduce] got " + std::to_string(elementwise_->program().n_inputs()) +
                     " inputs and " + std::to_string(elementwise_->program().outputs().size()) +
                     " results, expected inputs and one result");
  }
}

std::string FusedReduce::parameters() const {
  return reduce_->parameters() + "; " + describe(elementwise_->program());
}

std::vector<std::string> FusedReduce::names() {
  return {"FusedSum", "FusedProd", "FusedMax", "FusedMin", "FusedAny", "FusedAll"};
}

OpPtr FusedReduce::restored(std::string_view name, ParameterText& text) {
  static constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max,
                                      ReduceOp::min, ReduceOp::any,  ReduceOp::all};
  const std::vector<std::string> all = names();
  const ReduceOp op = kOps[std::find(all.begin(), all.end(), name) - all.begin()];
  text.expect("axes=");
  Axes axes = text.integers();
  check_axes(axes);
  const bool allows_none = text.take(", allows_none");
  text.expect("; ");
  auto program = read_value<ElementwiseProgram>(text);
  if (program.outputs().size() != 1 || program.n_inputs() == 0)
    throw FormatError("no such program");
  return std::make_shared<FusedReduce>(std::move(program), op, std::move(axes), allows_none);
}

Apply FusedReduce::make_node(std::span<const Variable> inputs) const {
  const Variable computed = elementwise_->make_node(inputs).output(0);
  return node(inputs, {reduce_->make_node({&computed, 1}).output(0).type()});
}

std::vector<Extents> FusedReduce::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  return reduce_->infer_shapes(apply, elementwise_->infer_shapes(apply, inputs));
}

std::vector<Variable> FusedReduce::pullback(const Apply& apply, CotangentSpan cotangents) const {
  return pullback_of_steps(apply, cotangents, [&](std::span<const Variable> inputs) {
    const Variable computed = unrolled(elementwise_->program(), inputs)[0];
    return reduce_->make_node({&computed, 1}).outputs();
  });
}

void FusedReduce::run(RunContext& context) const {
  const std::size_t n = context.inputs().size(), rank = context.input(0).rank();
  Extents extents(rank, 1);
  for (const ConstView& view : context.inputs()) {
    for (std::size_t k = 0; k < rank; ++k) {
      if (view.extents[k] != 1) extents[k] = view.extents[k];
    }
  }
  if (reduce_->runs_on_none(extents, context.output(0))) return;
  SmallVector<ConstView, 8> views(n);
  SmallVector<index_t, 32> strides(n * rank);
  for (std::size_t i = 0; i < n; ++i) {
    views[i] = stretched(context.input(i), extents, {strides.data() + i * rank, rank});
  }
  run_fused_reduce(reduce_->reduce_op(), elementwise_->program(), views, reduce_->axes(),
                   context.output(0));
}

// -- positions ---------------------------------------------------------------------------------

Apply ArgReduce::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  normalize_axes(axes_, type.rank(), name());
  result_dtype(op_, type.dtype);
  return node(inputs, {{DType::int64, without_axes(type.shape, axes_, true, name()), type.device}});
}

std::vector<Extents> ArgReduce::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {without_axes(inputs[0], axes_, true, name())};
}

void ArgReduce::run(RunContext& context) const {
  run_arg_reduce(op_, context.input(0), axes_, context.output(0));
}

static Variable arg_reduce(ReduceOp op, const Variable& x, const ReduceOptions& options) {
  const Axes axes = reduced_axes(x, options.axes, op == ReduceOp::max ? "argmax" : "argmin");
  const Variable y = std::make_shared<ArgReduce>(op, axes)->make_node({&x, 1}).output(0);
  return options.keepdims ? expand_dims(y, axes) : y;
}

Variable argmax(const Variable& x, const ReduceOptions& options) {
  return arg_reduce(ReduceOp::max, x, options);
}
Variable argmin(const Variable& x, const ReduceOptions& options) {
  return arg_reduce(ReduceOp::min, x, options);
}

// -- builders ----------------------------------------------------------------------------------

Variable largest_or_lowest(const Variable& x, const Axes& axes) {
  const auto max = std::make_shared<Reduce>(ReduceOp::max, axes, true);
  return expand_dims(max->make_node({&x, 1}).output(0), axes);
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

void register_ops_of_reduce() {
  register_type<ArgReduce>();
  register_type<FusedReduce>();
  register_type<Reduce>();
}

}  // namespace palimpsest::ops
