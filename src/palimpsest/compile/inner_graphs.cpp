// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/inner_graphs.hpp"

#include "palimpsest/ops/loop_op.hpp"

namespace palimpsest {
namespace {

bool is_loop(const Apply& node) { return dynamic_cast<const ops::Loop*>(&node.op()) != nullptr; }

}  // namespace

void rewrite_bodies(FunctionGraph& graph, const RewriteOptions& options,
                    std::vector<RewriteProfile>* reports) {
  RewriteOptions of_body = options;
  of_body.selection.features.clear();
  for (const Apply& node : graph.toposort()) {
    if (!is_loop(node)) continue;
    const auto& op = dynamic_cast<const ops::Loop&>(node.op());
    FunctionGraph body(op.body_inputs(), op.body_outputs());
    for (const Variable& v : body.inputs()) body.protect(v);
    ops::drop_unused_of_loops(body);
    rewrite_graph(body, {}, of_body, reports);
    rewrite_bodies(body, of_body, reports);
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
