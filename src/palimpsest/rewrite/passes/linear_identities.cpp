// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/linear_identities.hpp"

#include <cmath>
#include <map>

#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

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
  if (!inner || !inner->is_opposite_of(*outer)) return {};
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

// The transpose of a product of matrices as a product: its kernel writes the transposed result. A
// sum with the transpose then finds the product.
std::optional<Variable> transpose_on_the_way(const FunctionGraph& graph, const Apply& node) {
  const auto* const transpose = op_of<ops::Transpose>(node);
  if (!transpose || node.output(0).rank() != 2 || transpose->order() != Axes{1, 0}) return {};
  const Variable& v = node.input(0);
  const auto* const op = op_of<ops::Contract>(v);
  if (!op || !is_private_to(graph, v, node) || v.is_indestructible()) return {};
  Contraction contraction = op->contraction();
  std::swap(contraction.out[0], contraction.out[1]);
  return std::make_shared<const ops::Contract>(std::move(contraction))
      ->make_node(v.owner().inputs())
      .output(0);
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

// (x d) e for constants that are broadcast: x (d e), where d e is smaller than x and computed once
// for all calls. Other factors cost nothing in a fused step. Of numbers only when their product
// neither overflows nor vanishes.
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

// The labels of k (l x), where k and l are constants: those of the product of k and l, and of its
// product with x.
struct MergedProduct {
  Contraction constants, whole;
  std::map<int, index_t> extents;  // of labels of k and l
  double count(std::span<const int> labels) const {
    double n = 1;
    for (const int label : labels) n *= static_cast<double>(extents.at(label));
    return n;
  }
};

bool has_label(std::span<const int> labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

MergedProduct merged(const Contraction& outer, bool k_first, const Variable& k,
                     const Contraction& inner, bool l_first, const Variable& l) {
  const auto &of_k = k_first ? outer.a : outer.b, &of_inner = k_first ? outer.b : outer.a;
  const bool conj_inner = k_first ? outer.conj_b : outer.conj_a;
  int fresh = 0;
  for (const auto* labels : {&outer.a, &outer.b, &outer.out}) {
    for (const int label : *labels) fresh = std::max(fresh, label + 1);
  }
  std::map<int, int> names;  // of inner labels in the outer contraction
  for (std::size_t i = 0; i < inner.out.size(); ++i) names[inner.out[i]] = of_inner[i];
  const auto renamed = [&](std::span<const int> labels) {
    SmallVector<int, 8> result;
    for (const int label : labels) {
      const auto [at, is_new] = names.try_emplace(label, fresh);
      if (is_new) ++fresh;
      result.push_back(at->second);
    }
    return result;
  };
  MergedProduct result;
  result.constants = {.a = of_k,
                      .b = renamed(l_first ? inner.a : inner.b),
                      .out = {},
                      .conj_a = k_first ? outer.conj_a : outer.conj_b,
                      .conj_b = (l_first ? inner.conj_a : inner.conj_b) != conj_inner};
  const auto of_x = renamed(l_first ? inner.b : inner.a);
  for (const auto* labels : {&result.constants.a, &result.constants.b}) {
    for (const int label : *labels) {
      const bool is_needed = has_label(of_x, label) || has_label(outer.out, label);
      if (is_needed && !has_label(result.constants.out, label)) {
        result.constants.out.push_back(label);
      }
    }
  }
  result.whole = {.a = result.constants.out,
                  .b = of_x,
                  .out = outer.out,
                  .conj_a = false,
                  .conj_b = (l_first ? inner.conj_b : inner.conj_a) != conj_inner};
  const auto note = [&](std::span<const int> labels, const Variable& v) {
    for (std::size_t i = 0; i < labels.size(); ++i) result.extents[labels[i]] = v.type().shape[i];
  };
  note(result.constants.a, k);
  note(result.constants.b, l);
  return result;
}

// k (l x) for constants k and l, such as A^H A x: (k l) x, where k l has fewer elements than k and
// l and takes no longer than a moment.
std::optional<Variable> merge_products(const FunctionGraph& graph, const Apply& node) {
  constexpr double kMostProducts = 1 << 24;
  const auto* const outer = op_of<ops::Contract>(node);
  if (!outer || !is_inexact(node.output(0).dtype())) return {};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Variable &k = node.input(i), &between = node.input(1 - i);
    const auto* const inner = op_of<ops::Contract>(between);
    if (!k.is_constant() || !inner || !is_private_to(graph, between, node)) continue;
    for (const std::size_t j : {std::size_t{0}, std::size_t{1}}) {
      const Variable l = between.owner().input(j), x = between.owner().input(1 - j);
      if (!l.is_constant() || x.is_constant()) continue;
      const MergedProduct both =
          merged(outer->contraction(), i == 0, k, inner->contraction(), j == 0, l);
      SmallVector<int, 8> all;
      for (const auto& [label, extent] : both.extents) all.push_back(label);
      const double apart = both.count(both.constants.a) + both.count(both.constants.b);
      if (both.count(both.constants.out) >= apart || both.count(all) > kMostProducts) continue;
      const auto product = [](Contraction c, const Variable& a, const Variable& b) {
        return std::make_shared<const ops::Contract>(std::move(c))
            ->make_node(std::vector{a, b})
            .output(0);
      };
      return product(both.whole, product(both.constants, k, l), x);
    }
  }
  return {};
}

Replacements apply_identity(const FunctionGraph& graph, const Apply& node) {
  if (node.output_count() != 1) return {};
  if (auto result = cancel_transforms(node.output(0))) return if_it_fits(node, result);
  if (auto result = conjugate_on_the_way(graph, node)) return if_it_fits(node, result);
  if (auto result = transpose_on_the_way(graph, node)) return if_it_fits(node, result);
  if (auto result = sum_of_broadcast(node)) return if_it_fits(node, result);
  if (auto result = merge_products(graph, node)) return if_it_fits(node, result);
  return if_it_fits(node, merge_diagonals(graph, node));
}

}  // namespace

RewriteResult apply_linear_identities(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rule{"apply_linear_identities", apply_identity};
  return walk_to_fixed_point(graph, {&rule, 1});
}

}  // namespace palimpsest
