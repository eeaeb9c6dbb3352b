// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/split_buffers.hpp"

#include <algorithm>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/graph/origin.hpp"

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

}  // namespace

RewriteResult split_buffers(FunctionGraph& graph, const RewriteHints&) {
  RewriteResult result;
  for (const Apply& node : graph.toposort()) {
    if (!node.op().is_cheap() || node.output_count() != 1) continue;
    const Variable v = node.output(0);
    for (const Use& use : uses_to_split(graph, v)) {
      const Variable again = v.copy();
      copy_origin(node, again.owner());
      for (const Use& other : graph.uses(v)) {
        if (other.node == use.node) graph.redirect(other, again, "split_buffers");
      }
      ++result.applied;
    }
  }
  return result;
}

}  // namespace palimpsest
