// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/split_buffers.hpp"

#include <algorithm>

#include "palimpsest/graph/marks.hpp"
#include "palimpsest/graph/op.hpp"

namespace palimpsest {
namespace {

bool could_overwrite(const Use& use) {
  return use.node.defined() && overwritten_inputs(use.node).empty() &&
         use.node.op().inplace_on_inputs(use.node, {use.index}) != nullptr;
}

// The uses of v that each get a result of their own: all that could write, but one. The last one
// comes after every reader that stays, if the order can have it so.
std::vector<Use> uses_to_split(const FunctionGraph& graph, const Variable& v) {
  if (graph.use_count(v) < 2 || graph.is_output(v) || v.is_indestructible()) return {};
  std::vector<Use> writers;
  for (const Use& use : graph.uses(v)) {
    const bool is_known = std::any_of(writers.begin(), writers.end(),
                                      [&](const Use& other) { return other.node == use.node; });
    if (!is_known && could_overwrite(use)) writers.push_back(use);
  }
  if (!writers.empty()) writers.pop_back();
  return writers;
}

// Gives a user of the node's result a result of its own. False: an input of the node is overwritten
// before the user runs.
bool compute_again_for(FunctionGraph& graph, const Apply& node, const Apply& user) {
  const Variable v = node.output(0), again = v.copy();
  copy_marks(node, again.owner());
  const FunctionGraph::Token token = graph.checkpoint();
  for (const Use& use : graph.uses(v)) {
    if (use.node == user) graph.redirect(use, again, "split_buffers");
  }
  const bool is_consistent = graph.consistent();
  if (!is_consistent) graph.revert(token);
  graph.release(token);
  return is_consistent;
}

}  // namespace

RewriteResult split_buffers(FunctionGraph& graph, const RewriteHints&) {
  RewriteResult result;
  for (const Apply& node : graph.toposort()) {
    if (!node.op().is_cheap() || node.output_count() != 1) continue;
    const Variable v = node.output(0);
    for (const Use& use : uses_to_split(graph, v)) {
      const bool is_done = compute_again_for(graph, node, use.node);
      result += is_done ? RewriteResult(1) : RewriteResult(0, 1);
    }
  }
  return result;
}

}  // namespace palimpsest
