// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/reduce/scan.hpp"

#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"

namespace palimpsest::ops {
namespace {

// The sums from each element to the last.
Variable sums_behind(const Variable& x, index_t axis) {
  return flip(cumsum(flip(x, {axis}), axis), {axis});
}

// Before the first 0: y_k / x_i for all k >= i. At the first 0: the products without it, which end
// at the next 0. Behind it: 0, because every product has the 0 as a factor.
Variable cumprod_cotangent(const Variable& x, const Variable& y, index_t axis, const Variable& w) {
  const Variable is_zero = eq(x, 0), n_zeros = cumsum(is_zero, axis);
  const Variable is_first = logical_and(is_zero, eq(n_zeros, 1));
  const Variable without_first = cumprod(where(is_first, 1, x), axis);
  const Variable in_front = sums_behind(w * conj(y), axis) / conj(where(is_zero, 1, x));
  const Variable at_first = sums_behind(w * conj(without_first), axis);
  return where(eq(n_zeros, 0), in_front, where(is_first, at_first, 0));
}

Variable scan(ReduceOp op, const Variable& x, std::optional<index_t> axis) {
  const Variable line = axis ? x : ravel(x);
  const char* who = op == ReduceOp::sum ? "cumsum" : "cumprod";
  const index_t k = normalize_axis(axis.value_or(0), line.rank(), who);
  return std::make_shared<Scan>(op, static_cast<std::size_t>(k))->make_node({&line, 1}).output(0);
}

}  // namespace

Apply Scan::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  TensorType type = inputs[0].type();
  normalize_axis(static_cast<index_t>(axis_), type.rank(), name());
  type.dtype = result_dtype(op_, type.dtype);
  if (in_place_ && (type.dtype != inputs[0].dtype() || may_overlap_itself(inputs[0]))) {
    throw ValueError("[" + name() + "] got " + inputs[0].str() + ", expected an array of " +
                     std::string(name_of(type.dtype)) + " that can be overwritten");
  }
  return node(inputs, {std::move(type)});
}

Linearity Scan::linear_in(const Apply& apply, int) const {
  const bool linear = op_ == ReduceOp::sum && is_inexact(apply.input(0).dtype());
  return linear ? Linearity::complex : Linearity::no;
}

std::vector<Variable> Scan::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable &x = apply.input(0), &w = cotangents[0];
  const auto axis = static_cast<index_t>(axis_);
  if (!is_inexact(x.dtype())) return {Variable()};
  if (op_ == ReduceOp::sum) return {sums_behind(w, axis)};
  return {cumprod_cotangent(x, apply.output(0), axis, w)};
}

void Scan::run(RunContext& context) const {
  run_scan(op_, context.input(0), axis_, context.output(0));
}

Variable cumsum(const Variable& x, std::optional<index_t> axis) {
  return scan(ReduceOp::sum, x, axis);
}
Variable cumprod(const Variable& x, std::optional<index_t> axis) {
  return scan(ReduceOp::prod, x, axis);
}

void register_ops_of_scan() { register_type<Scan>(); }

}  // namespace palimpsest::ops
