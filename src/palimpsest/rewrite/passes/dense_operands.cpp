// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/dense_operands.hpp"

#include <unordered_map>

#include "palimpsest/graph/aliased_inputs.hpp"
#include "palimpsest/graph/origin.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"

namespace palimpsest {
namespace {

// Results in memory of their own are dense; so are constants, unless they say otherwise.
bool is_surely_dense(AliasedInputs& aliased, const Variable& v) {
  if (v.rank() == 0) return true;
  if (v.is_constant()) return v.constant_value().is_contiguous();
  return v.owner().defined() && aliased.of(v).empty();
}

}  // namespace

void make_operands_dense(FunctionGraph& graph) {
  AliasedInputs aliased;
  std::unordered_map<const VariableNode*, Variable> made;
  for (const Apply& node : graph.toposort()) {
    if (!ops::rounds_by_layout(node)) continue;
    const std::set<int> overwritten = overwritten_inputs(node);
    for (int i = 0; i < static_cast<int>(node.input_count()); ++i) {
      const Variable v = node.input(static_cast<std::size_t>(i));
      if (overwritten.contains(i) || is_surely_dense(aliased, v)) continue;
      Variable& dense = made[v.node()];
      if (!dense.defined()) {
        dense = std::make_shared<ops::Contiguous>()->make_node({&v, 1}).output(0);
        copy_origin(node, dense.owner());
      }
      graph.redirect({node, i}, dense, "make_operands_dense");
    }
  }
}

}  // namespace palimpsest
