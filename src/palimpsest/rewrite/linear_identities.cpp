// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/linear_identities.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "palimpsest/ops/contract_op.hpp"
#include "palimpsest/ops/create_op.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/fft_op.hpp"
#include "palimpsest/ops/reduce.hpp"
#include "palimpsest/ops/reduce_op.hpp"
#include "palimpsest/ops/shape_op.hpp"
#include "palimpsest/ops/shape_ops.hpp"
#include "palimpsest/rewrite/patterns.hpp"

namespace palimpsest {
namespace {

double exponent_of(ops::FftScale scale) {
  switch (scale) {
    case ops::FftScale::one:
      return 0;
    case ops::FftScale::root:
      return 0.5;
    case ops::FftScale::inverse:
      return 1;
  }
  throw InternalError("[linear_identities] not a scale");
}

// x * N^p, where N is the number of transformed points; nothing when N is needed and unknown.
std::optional<Variable> scaled_by_points(const Variable& x, const Axes& axes, double p) {
  if (p == 0) return x;
  double points = 1;
  for (index_t axis : axes) {
    const index_t extent = x.type().shape[static_cast<std::size_t>(axis)];
    if (extent == kUnknown) return {};
    points *= static_cast<double>(extent);
  }
  return x * std::pow(points, p);
}

// F' F x, where F' has the opposite sign over the same axes: x times a power of N.
std::optional<Variable> cancel_transforms(const Variable& v) {
  const auto* outer = op_of<ops::Fft>(v);
  if (!outer) return {};
  const Variable between = v.owner().input(0);
  const auto* inner = op_of<ops::Fft>(between);
  if (!inner || inner->forward() == outer->forward() || inner->axes() != outer->axes() ||
      inner->centered() != outer->centered()) {
    return {};
  }
  const double p = 1 - exponent_of(inner->scale()) - exponent_of(outer->scale());
  return scaled_by_points(between.owner().input(0), outer->axes(), p);
}

// A conjugated factor of a contraction: the kernel conjugates on the way.
std::optional<Variable> conjugate_on_the_way(const FunctionGraph& graph, const Apply& node) {
  const auto* const op = op_of<ops::Contract>(node);
  if (!op) return {};
  std::vector<Variable> inputs(node.inputs().begin(), node.inputs().end());
  Contraction contraction = op->contraction();
  bool* const conj[] = {&contraction.conj_a, &contraction.conj_b};
  bool is_changed = false;
  for (std::size_t i = 0; i < 2; ++i) {
    const Variable v = inputs[i];
    if (!is_plain(v, ScalarOp::conj) || !is_private_to(graph, v, node)) continue;
    inputs[i] = v.owner().input(0);
    *conj[i] = !*conj[i];
    is_changed = true;
  }
  if (!is_changed) return {};
  return std::make_shared<const ops::Contract>(std::move(contraction))->make_node(inputs).output(0);
}

// The sum over axes along which a value was repeated is a multiple of it.
std::optional<Variable> sum_of_broadcast(const Apply& node) {
  const auto* const sum = op_of<ops::Reduce>(node);
  if (!sum || sum->reduce_op() != ReduceOp::sum) return {};
  const Variable& wide = node.input(0);
  if (!op_of<ops::BroadcastTo>(wide) && !op_of<ops::BroadcastLike>(wide) &&
      !op_of<ops::Alloc>(wide)) {
    return {};
  }
  const Variable narrow = wide.owner().input(0);
  if (!is_inexact(narrow.dtype()) || narrow.rank() > wide.rank()) return {};
  const std::size_t n_new = wide.rank() - narrow.rank();
  double times = 1;
  Axes summed, one;  // of narrow
  for (index_t axis : sum->axes()) {
    const auto k = static_cast<std::size_t>(axis);
    const index_t n = wide.type().shape[k];
    const bool is_repeated = k < n_new || (narrow.type().shape[k - n_new] == 1 && n != 1);
    if (is_repeated && n == kUnknown) return {};
    if (is_repeated) times *= static_cast<double>(n);
    if (k < n_new) continue;
    (is_repeated ? one : summed).push_back(axis - static_cast<index_t>(n_new));
  }
  if (times == 1) return {};
  Variable v = summed.empty() ? narrow : ops::sum(narrow, {summed, true});
  Axes gone = summed;
  for (index_t axis : one) gone.push_back(axis);
  std::sort(gone.begin(), gone.end());
  v = ops::squeeze(v, gone) * times;
  const TensorType& result = node.output(0).type();
  if (v.type() == result) return v;
  return result.is_fully_known() ? std::optional(ops::broadcast_to(v, result.shape)) : std::nullopt;
}

bool is_smaller(const Variable& v, const Variable& than) {
  for (std::size_t k = 0; k < v.rank(); ++k) {
    if (v.type().shape[k] == 1 && than.type().shape[k] != 1) return true;
  }
  return false;
}

// (x d) e for constants that are broadcast: x (d e), where d e is smaller than x and computed once for
// all calls. Other factors cost nothing in a fused step. Of numbers only when their product neither
// overflows nor vanishes.
std::optional<Variable> merge_diagonals(const FunctionGraph& graph, const Apply& node) {
  if (!is_plain(node, ScalarOp::mul) || !is_inexact(node.output(0).dtype())) return {};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Variable &e = node.input(i), &product = node.input(1 - i);
    if (!e.is_constant() || !is_smaller(e, product) || !is_plain(product, ScalarOp::mul) ||
        !is_private_to(graph, product, node) || product.is_indestructible()) {
      continue;
    }
    for (const std::size_t j : {std::size_t{0}, std::size_t{1}}) {
      const Variable d = product.owner().input(j), x = product.owner().input(1 - j);
      if (!d.is_constant() || !is_smaller(d, x) || !is_smaller(e, x)) continue;
      const auto p = scalar_value(d), q = scalar_value(e);
      if (p && q && !std::isnormal(std::abs(*p * *q))) continue;
      if (p && q && is_real_floating(d) && d.dtype() == DType::float32 &&
          !std::isnormal(static_cast<float>(std::abs(*p * *q)))) {
        continue;
      }
      const Variable both = ops::mul(d, e);
      if (is_smaller(both, x)) return ops::mul(x, both);
    }
  }
  return {};
}

Replacements apply_identity(const FunctionGraph& graph, const Apply& node) {
  if (node.output_count() != 1) return {};
  if (auto result = cancel_transforms(node.output(0))) return if_it_fits(node, result);
  if (auto result = conjugate_on_the_way(graph, node)) return if_it_fits(node, result);
  if (auto result = sum_of_broadcast(node)) return if_it_fits(node, result);
  return if_it_fits(node, merge_diagonals(graph, node));
}

}  // namespace

RewriteResult apply_linear_identities(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rule{"apply_linear_identities", apply_identity};
  return walk_to_fixed_point(graph, {&rule, 1});
}

}  // namespace palimpsest
