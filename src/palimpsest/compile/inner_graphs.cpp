// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/inner_graphs.hpp"

#include <algorithm>

#include "palimpsest/ops/loop_op.hpp"

namespace palimpsest {
namespace {

bool is_loop(const Apply& node) { return dynamic_cast<const ops::Loop*>(&node.op()) != nullptr; }

}  // namespace

// Users come first: without a loop's unused outputs, another one may lose its last use.
void drop_unused_of_loops(FunctionGraph& graph) {
  std::vector<Apply> order = graph.toposort();
  std::reverse(order.begin(), order.end());
  for (const Apply& node : order) {
    if (!is_loop(node) || !graph.contains(node)) continue;
    std::vector<bool> is_used;
    for (const Variable& v : node.outputs()) is_used.push_back(!graph.uses(v).empty());
    const std::vector<Variable> with = ops::without_unused(node, is_used);
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < with.size(); ++k) {
      if (!with[k].defined()) continue;
      with[k].node()->name = node.output(k).name();
      pairs.emplace_back(node.output(k), with[k]);
    }
    graph.replace_all(pairs, "drop_unused_of_loops");
  }
}

void rewrite_bodies(FunctionGraph& graph, const RewriteSelection& selection) {
  for (const Apply& node : graph.toposort()) {
    if (!is_loop(node)) continue;
    const auto& op = dynamic_cast<const ops::Loop&>(node.op());
    FunctionGraph body(op.body_inputs(), op.body_outputs());
    for (const Variable& v : body.inputs()) body.protect(v);
    drop_unused_of_loops(body);
    rewrite_graph(body, {}, selection);
    rewrite_bodies(body, selection);
    const Apply with = ops::with_body(node, body.inputs(), body.outputs());
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < with.output_count(); ++k) {
      with.output(k).node()->name = node.output(k).name();
      pairs.emplace_back(node.output(k), with.output(k));
    }
    graph.replace_all(pairs, "rewrite_bodies");
  }
}

}  // namespace palimpsest
