// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/fuse_reductions.hpp"

#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

constexpr index_t kShortestRun = 64;

// True if kShortestRun or more adjacent elements are reduced, or kept, as far as is known.
bool has_long_runs(const TensorType& type, const Axes& axes) {
  const auto is_reduced = [&](std::size_t k) {
    return std::find(axes.begin(), axes.end(), static_cast<index_t>(k)) != axes.end();
  };
  index_t run = 1;
  for (std::size_t k = type.rank(); k-- > 0 && is_reduced(k) == is_reduced(type.rank() - 1);) {
    if (type.shape[k] == kUnknown) return true;
    run *= type.shape[k];
  }
  return run >= kShortestRun;
}

Replacements take_in_step(const FunctionGraph& graph, const Apply& node) {
  const auto* const reduce = op_of<ops::Reduce>(node);
  if (!reduce || reduce->axes().empty()) return {};
  const Variable& x = node.input(0);
  const auto* const step = op_of<ops::Elementwise>(x);
  if (!step || step->is_in_place() || x.is_indestructible()) return {};
  if (x.owner().output_count() != 1 || x.owner().input_count() == 0) return {};
  if (!is_private_to(graph, x, node) || !has_long_runs(x.type(), reduce->axes())) return {};
  const auto fused = std::make_shared<const ops::FusedReduce>(
      step->program(), reduce->reduce_op(), reduce->axes(), reduce->allows_none());
  return if_it_fits(node, fused->make_node(x.owner().inputs()).output(0));
}

}  // namespace

RewriteResult fuse_reductions(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"fuse_reductions", take_in_step}};
  return walk(graph, rules);
}

}  // namespace palimpsest
