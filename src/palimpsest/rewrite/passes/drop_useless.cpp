// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/drop_useless.hpp"

#include "palimpsest/ops/control/stop_gradient_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

bool is_zero(const Extents& widths) {
  return std::all_of(widths.begin(), widths.end(), [](index_t w) { return w == 0; });
}

bool is_identity(const Axes& order) {
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (order[k] != static_cast<index_t>(k)) return false;
  }
  return true;
}

bool is_useless_cast(const Apply& node) {
  const auto* const op = op_of<ops::Elementwise>(node);
  return op && !op->is_in_place() && op->scalar_op() == ScalarOp::identity &&
         node.input(0).dtype() == node.output(0).dtype();
}

// True for equal, fully known extents: the same elements at the same places.
bool is_same_shape(const Apply& node) {
  const TensorType &in = node.input(0).type(), &out = node.output(0).type();
  return in.is_fully_known() && in == out;
}

bool does_nothing(const Apply& node) {
  if (is_useless_cast(node) || op_of<ops::StopGradient>(node)) return true;
  if (op_of<ops::Reshape>(node) || op_of<ops::BroadcastTo>(node) ||
      op_of<ops::SpecifyShape>(node) || op_of<ops::ReshapeTo>(node) ||
      op_of<ops::BroadcastLike>(node)) {
    return is_same_shape(node);
  }
  if (const auto* op = op_of<ops::Transpose>(node)) return is_identity(op->order());
  if (const auto* op = op_of<ops::ExpandDims>(node)) return op->axes().empty();
  if (const auto* op = op_of<ops::Squeeze>(node)) return op->axes().empty();
  if (const auto* op = op_of<ops::Flip>(node)) return op->axes().empty();
  if (const auto* op = op_of<ops::Subtensor>(node)) {
    if (op->index().is_whole()) return true;
    const auto widths = op->index().widths(node.input(0).type().shape);
    const auto is_nothing = [](const auto& w) { return w.first == 0 && w.second == 0; };
    return is_same_shape(node) && widths && std::all_of(widths->begin(), widths->end(), is_nothing);
  }
  if (const auto* op = op_of<ops::Pad>(node)) return is_zero(op->before()) && is_zero(op->after());
  if (op_of<ops::Join>(node)) return node.input_count() == 1;
  if (const auto* op = op_of<ops::Roll>(node)) {
    return std::ranges::all_of(op->rolls(), &ops::AxisRoll::does_nothing);
  }
  return false;
}

Replacements drop(const FunctionGraph&, const Apply& node) {
  if (!does_nothing(node)) return {};
  return if_it_fits(node, node.input(0));
}

// Two arrangements of axes one after the other are one, or none.
Replacements combine_arrangements(const FunctionGraph&, const Apply& node) {
  if (node.input_count() != 1) return {};
  const Variable between = node.input(0);
  const Apply first = between.owner();
  if (!first.defined()) return {};
  if (const auto* outer = op_of<ops::Transpose>(node)) {
    const auto* const inner = op_of<ops::Transpose>(first);
    if (!inner) return {};
    Axes order;
    for (index_t axis : outer->order()) {
      order.push_back(inner->order()[static_cast<std::size_t>(axis)]);
    }
    return if_it_fits(node, ops::transpose(first.input(0), std::move(order)));
  }
  if (const auto* outer = op_of<ops::Squeeze>(node)) {
    const auto* const inner = op_of<ops::ExpandDims>(first);
    if (!inner || inner->axes() != outer->axes()) return {};
    return if_it_fits(node, first.input(0));
  }
  if (const auto* outer = op_of<ops::ExpandDims>(node)) {
    const auto* const inner = op_of<ops::Squeeze>(first);
    if (!inner || inner->axes() != outer->axes()) return {};
    return if_it_fits(node, first.input(0));  // fits where the extents are known to be 1
  }
  if (const auto* outer = op_of<ops::Flip>(node)) {
    const auto* const inner = op_of<ops::Flip>(first);
    if (!inner) return {};
    Axes axes;
    for (std::size_t k = 0; k < node.input(0).rank(); ++k) {
      const auto axis = static_cast<index_t>(k);
      const auto has = [&](const Axes& list) {
        return std::find(list.begin(), list.end(), axis) != list.end();
      };
      if (has(outer->axes()) != has(inner->axes())) axes.push_back(axis);
    }
    return if_it_fits(node, ops::flip(first.input(0), std::move(axes)));
  }
  if (op_of<ops::Reshape>(node) && op_of<ops::Reshape>(first)) {
    const TensorType &in = first.input(0).type(), &out = node.output(0).type();
    if (!in.is_fully_known() || !out.is_fully_known()) return {};
    return if_it_fits(node, ops::reshape(first.input(0), out.shape));
  }
  return {};
}

}  // namespace

RewriteResult drop_useless(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"drop_useless", drop}, {"drop_useless", combine_arrangements}};
  RewriteResult result = walk_to_fixed_point(graph, rules);
  result.applied += ops::drop_unused_of_loops(graph);
  return result;
}

}  // namespace palimpsest
