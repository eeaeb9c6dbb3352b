// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fold_shapes.hpp"

#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

Replacements fold_known(const FunctionGraph&, const Apply& node) {
  const bool is_shape = op_of<ops::ShapeOf>(node);
  const auto* const count = op_of<ops::AxisCount>(node);
  if (!is_shape && !count) return {};
  const TensorType& type = node.input(0).type();
  const TensorType& result = node.output(0).type();
  if (is_shape) {
    if (!type.is_fully_known()) return {};
    const std::vector<index_t> extents(type.shape.begin(), type.shape.end());
    const Tensor value = extents.empty() ? Tensor::zeros({0}, DType::int64, result.device)
                                         : Tensor::from(extents, {}, result.device);
    return if_it_fits(node, constant(value));
  }
  index_t n = 1;
  for (index_t axis : count->axes()) {
    const index_t extent = type.shape[static_cast<std::size_t>(axis)];
    if (extent == kUnknown) return {};
    n *= extent;
  }
  return if_it_fits(node, constant(Tensor::scalar(n, result.device).to(result.dtype)));
}

// An input with the extents of the output, when no other input has a say in them.
std::optional<Variable> of_same_extents(const Variable& v) {
  const Apply node = v.owner();
  if (!node.defined()) return {};
  if (op_of<ops::Roll>(node) || op_of<ops::Scan>(node) || op_of<ops::Flip>(node) ||
      op_of<ops::Fft>(node)) {
    return node.input(0);
  }
  if (!op_of<ops::Elementwise>(node)) return {};
  std::optional<Variable> found;
  for (const Variable& input : node.inputs()) {
    const Extents& shape = input.type().shape;
    if (std::all_of(shape.begin(), shape.end(), [](index_t n) { return n == 1; })) continue;
    if (found && !(*found == input)) return {};
    found = input;
  }
  return found && found->type().shape == v.type().shape ? found : std::nullopt;
}

// True if the op ignores the dtype of an input whose elements it does not read.
bool takes_any_dtype(const Apply& node, std::size_t input) {
  return op_of<ops::ShapeOf>(node) || op_of<ops::AxisCount>(node) ||
         dynamic_cast<const ops::Generator*>(&node.op()) ||
         ((op_of<ops::Alloc>(node) || op_of<ops::BroadcastLike>(node)) && input > 0);
}

Replacements take_extents_from_source(const FunctionGraph&, const Apply& node) {
  std::vector<Variable> inputs(node.inputs().begin(), node.inputs().end());
  bool is_changed = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.op().uses_elements(node, static_cast<int>(i)) || !takes_any_dtype(node, i)) continue;
    while (const auto source = of_same_extents(inputs[i])) {
      inputs[i] = *source;
      is_changed = true;
    }
  }
  if (!is_changed) return {};
  return if_it_fits(node, node.op().make_node(inputs).output(0));
}

}  // namespace

RewriteResult fold_shapes(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"fold_shapes", fold_known},
                               {"fold_shapes", take_extents_from_source}};
  return walk_to_fixed_point(graph, rules);
}

}  // namespace palimpsest
