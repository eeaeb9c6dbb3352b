// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/stabilize.hpp"

#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

std::optional<Variable> argument_of(const Variable& v, ScalarOp op) {
  if (!is_plain(v, op) || !is_real_floating(v)) return {};
  return v.owner().input(0);
}

// x of 1 + x.
std::optional<Variable> added_to_one(const Variable& v) {
  if (!is_plain(v, ScalarOp::add) || !is_real_floating(v)) return {};
  const Apply sum = v.owner();
  if (is_number(sum.input(0), 1)) return sum.input(1);
  if (is_number(sum.input(1), 1)) return sum.input(0);
  return {};
}

// x of 1 - x.
std::optional<Variable> subtracted_from_one(const Variable& v) {
  if (!is_plain(v, ScalarOp::sub) || !is_real_floating(v)) return {};
  return is_number(v.owner().input(0), 1) ? std::optional(v.owner().input(1)) : std::nullopt;
}

// log(1 + exp(x)), for every x.
Variable softplus(const Variable& x) {
  return ops::add(ops::maximum(x, 0.0), ops::log1p(ops::exp(ops::neg(ops::abs(x)))));
}

// log(1 / (1 + exp(-x))), for every x.
Variable log_of_sigmoid(const Variable& x) {
  return ops::sub(ops::minimum(x, 0.0), ops::log1p(ops::exp(ops::neg(ops::abs(x)))));
}

// The argument x and the axes of a sum of exponentials of x.
struct SumOfExp {
  Variable x;
  Axes axes;
};
// True if a largest element was subtracted already.
bool is_reduced_by_maximum(const Variable& x) {
  if (!is_plain(x, ScalarOp::sub)) return false;
  Variable offset = x.owner().input(1);
  for (;;) {
    if (const auto* max = op_of<ops::Reduce>(offset)) return max->reduce_op() == ReduceOp::max;
    if (is_plain(offset, ScalarOp::where)) {
      offset = offset.owner().input(1);
    } else if (offset.owner().defined() && !offset.owner().op().view_map(offset.owner()).empty()) {
      offset = offset.owner().input(0);
    } else if (op_of<ops::BroadcastLike>(offset)) {
      offset = offset.owner().input(0);
    } else {
      return false;
    }
  }
}

std::optional<SumOfExp> sum_of_exp(const Variable& v) {
  const auto* const sum = op_of<ops::Reduce>(v);
  if (!sum || sum->reduce_op() != ReduceOp::sum) return {};
  const auto x = argument_of(v.owner().input(0), ScalarOp::exp);
  if (!x || x->dtype() != v.dtype() || is_reduced_by_maximum(*x)) return {};
  return SumOfExp{*x, sum->axes()};
}

Variable logsumexp(const SumOfExp& of) { return ops::logsumexp(of.x, {of.axes, false}); }

// The logarithm of the sum, with axes of one element where the sum had them.
std::optional<Variable> log_of_sum_of_exp(const Variable& v) {
  if (const auto of = sum_of_exp(v)) return logsumexp(*of);
  if (const auto* op = op_of<ops::ExpandDims>(v)) {
    if (const auto inner = log_of_sum_of_exp(v.owner().input(0))) {
      return ops::expand_dims(*inner, op->axes());
    }
  }
  if (op_of<ops::BroadcastTo>(v) || op_of<ops::BroadcastLike>(v)) {
    const auto inner = log_of_sum_of_exp(v.owner().input(0));
    std::vector<Variable> inputs(v.owner().inputs().begin(), v.owner().inputs().end());
    if (!inner) return {};
    inputs[0] = *inner;
    return v.owner().op().make_node(inputs).output(0);
  }
  return {};
}

Replacements stabilize_log(const FunctionGraph&, const Apply& node) {
  if (!is_plain(node, ScalarOp::log) || !is_real_floating(node.output(0))) return {};
  const Variable& v = node.input(0);
  if (const auto x = argument_of(v, ScalarOp::exp)) return if_it_fits(node, *x);
  if (const auto x = argument_of(v, ScalarOp::sigmoid)) {
    return if_it_fits(node, log_of_sigmoid(*x));
  }
  if (const auto x = added_to_one(v)) return if_it_fits(node, ops::log1p(*x));
  if (const auto x = subtracted_from_one(v)) return if_it_fits(node, ops::log1p(ops::neg(*x)));
  if (const auto result = log_of_sum_of_exp(v)) return if_it_fits(node, *result);
  if (is_plain(v, ScalarOp::div)) {  // such as of a softmax
    const auto x = argument_of(v.owner().input(0), ScalarOp::exp);
    const Variable& below = v.owner().input(1);
    if (!x || below.dtype() != v.dtype()) return {};
    const auto total = log_of_sum_of_exp(below);
    return if_it_fits(node, ops::sub(*x, total ? *total : ops::log(below)));
  }
  return {};
}

Replacements stabilize_log1p(const FunctionGraph&, const Apply& node) {
  if (!is_plain(node, ScalarOp::log1p) || !is_real_floating(node.output(0))) return {};
  const Variable& v = node.input(0);
  if (const auto x = argument_of(v, ScalarOp::exp)) {
    const auto inner = argument_of(*x, ScalarOp::neg);
    if (inner && is_plain(*inner, ScalarOp::abs)) return {};  // that never overflows
    return if_it_fits(node, softplus(*x));
  }
  const auto minus = argument_of(v, ScalarOp::neg);
  const auto x = minus ? argument_of(*minus, ScalarOp::sigmoid) : std::nullopt;
  return x ? if_it_fits(node, log_of_sigmoid(ops::neg(*x))) : Replacements();
}

Replacements stabilize_difference(const FunctionGraph&, const Apply& node) {
  if (!is_plain(node, ScalarOp::sub) && !is_plain(node, ScalarOp::add)) return {};
  if (!is_real_floating(node.output(0))) return {};
  const Variable &a = node.input(0), &b = node.input(1);
  if (is_plain(node, ScalarOp::add)) {
    if (const auto x = argument_of(a, ScalarOp::exp); x && is_number(b, -1)) {
      return if_it_fits(node, ops::expm1(*x));
    }
    const auto x = argument_of(b, ScalarOp::exp);
    return x && is_number(a, -1) ? if_it_fits(node, ops::expm1(*x)) : Replacements();
  }
  if (const auto x = argument_of(a, ScalarOp::exp); x && is_number(b, 1)) {
    return if_it_fits(node, ops::expm1(*x));
  }
  if (!is_number(a, 1)) return {};
  if (const auto x = argument_of(b, ScalarOp::exp)) {
    return if_it_fits(node, ops::neg(ops::expm1(*x)));
  }
  const auto x = argument_of(b, ScalarOp::sigmoid);
  return x ? if_it_fits(node, ops::sigmoid(ops::neg(*x))) : Replacements();
}

// 1 / (1 + exp(-x)), exp(x) / (1 + exp(x)).
Replacements find_sigmoid(const FunctionGraph&, const Apply& node) {
  Variable below;
  std::optional<Variable> above;
  if (is_plain(node, ScalarOp::reciprocal)) {
    below = node.input(0);
  } else if (is_plain(node, ScalarOp::div)) {
    below = node.input(1);
    if (!is_number(node.input(0), 1)) {
      above = argument_of(node.input(0), ScalarOp::exp);
      if (!above) return {};
    }
  } else {
    return {};
  }
  const auto exponential = added_to_one(below);
  const auto x = exponential ? argument_of(*exponential, ScalarOp::exp) : std::nullopt;
  if (!x) return {};
  if (above) return *above == *x ? if_it_fits(node, ops::sigmoid(*x)) : Replacements();
  const auto inner = argument_of(*x, ScalarOp::neg);
  return if_it_fits(node, ops::sigmoid(inner ? *inner : ops::neg(*x)));
}

}  // namespace

RewriteResult stabilize(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"stabilize", stabilize_log},
                               {"stabilize", stabilize_log1p},
                               {"stabilize", stabilize_difference},
                               {"stabilize", find_sigmoid}};
  return walk_to_fixed_point(graph, rules);
}

}  // namespace palimpsest
