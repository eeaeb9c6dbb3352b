// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/fuse_filters.hpp"

#include "palimpsest/kernels/elementwise/computed_rows.hpp"
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/transforms/stencil_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

bool has_shape_of_all(const Variable& v, const Apply& node) {
  if (!v.type().is_fully_known()) return false;
  for (const Variable& other : node.inputs()) {
    for (std::size_t k = 0; k < v.rank(); ++k) {
      const index_t n = other.type().shape[k];
      if (n != 1 && n != v.type().shape[k]) return false;
    }
  }
  return true;
}

// A stencil that makes an input for this step alone, maybe with further axes of one element.
struct Made {
  Variable x;
  FilteredInput filter;
};

std::optional<Made> filter_of(const FunctionGraph& graph, const Variable& v, const Apply& step) {
  const auto maker_of = [&](const Variable& made) {
    const bool is_read_once = made.owner().defined() && !graph.is_output(made) &&
                              !made.is_indestructible() && graph.use_count(made) == 1;
    return is_read_once ? made.owner() : Apply();
  };
  Apply maker = maker_of(v);
  const ops::ExpandDims* const expand = maker.defined() ? op_of<ops::ExpandDims>(maker) : nullptr;
  if (expand != nullptr) maker = maker_of(maker.input(0));
  const auto* const op = maker.defined() ? op_of<ops::StencilOp>(maker) : nullptr;
  if (op == nullptr || maker.input_count() != 1 || op->stencil().step != 1) return {};
  if (!has_shape_of_all(v, step)) return {};
  Made made{maker.input(0), {0, op->stencil(), op->is_adjoint()}};
  if (expand != nullptr) {
    made.x = ops::expand_dims(made.x, expand->axes());
    for (const index_t axis : expand->axes()) {
      if (static_cast<std::size_t>(axis) <= made.filter.stencil.axis) ++made.filter.stencil.axis;
    }
  }
  return made;
}

int fuse_filter_into(FunctionGraph& graph, const Apply& node) {
  const auto* const step = op_of<ops::ElementwiseSums>(node);
  if (step == nullptr || step->is_in_place()) return 0;
  std::vector<FilteredInput> filtered = step->filtered();
  std::vector<Variable> inputs(node.inputs().begin(), node.inputs().end());
  int fused = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_known = std::any_of(filtered.begin(), filtered.end(), [&](const auto& f) {
      return f.input == static_cast<int>(i);
    });
    if (is_known || filtered.size() == ComputedRows::kMostFiltered) continue;
    const std::optional<Made> made = filter_of(graph, inputs[i], node);
    if (!made) continue;
    filtered.push_back(made->filter);
    filtered.back().input = static_cast<int>(i);
    inputs[i] = made->x;
    ++fused;
  }
  if (fused == 0) return 0;
  const auto op = std::make_shared<const ops::ElementwiseSums>(
      step->program(), step->n_arrays(), step->sums(), ops::Elementwise::Overwrites(),
      std::move(filtered));
  const Apply with = op->make_node(inputs);
  std::vector<std::pair<Variable, Variable>> pairs;
  for (std::size_t k = 0; k < node.output_count(); ++k) {
    pairs.emplace_back(node.output(k), with.output(k));
  }
  pass_origin(node, with);
  return replace_if_consistent(graph, pairs, "fuse_filters") ? fused : 0;
}

}  // namespace

RewriteResult fuse_filters(FunctionGraph& graph, const RewriteHints&) {
  int fused = 0;
  for (const Apply& node : graph.toposort()) {
    if (graph.contains(node)) fused += fuse_filter_into(graph, node);
  }
  return fused;
}

}  // namespace palimpsest
