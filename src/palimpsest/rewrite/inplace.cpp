// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/inplace.hpp"

#include <algorithm>
#include <unordered_map>

#include "palimpsest/graph/inplace_query.hpp"

namespace palimpsest {
namespace {

std::set<int> alias_inputs(const AliasMap& map, int output) {
  const auto it = map.find(output);
  return it == map.end() ? std::set<int>{} : it->second;
}

class InplacePass {
 public:
  InplacePass(FunctionGraph& graph, const RewriteHints& hints) : graph_(graph) {
    for (const auto& [value, memory] : hints.preferred_memory) mark_chain(value, memory);
  }

  int run() {
    int applied = 0;
    for (const Apply& node : graph_.toposort()) {
      if (!overwritten_inputs(node).empty()) continue;
      for (int input : candidates(node)) {
        if (fast_inplace_check(graph_, node, {&input, 1}).empty()) continue;
        if (try_input(node, input)) {
          ++applied;
          break;
        }
      }
    }
    return applied;
  }

 private:
  // Every value on the way to `value` from which in-place steps could lead there: they would best
  // lie in `memory` too.
  void mark_chain(const Variable& value, const Variable& memory) {
    std::vector<Variable> pending{value};
    while (!pending.empty()) {
      const Variable v = pending.back();
      pending.pop_back();
      if (!wanted_.emplace(v.node(), memory.node()).second) continue;
      const Apply owner = v.owner();
      if (!owner.defined() || !graph_.contains(owner)) continue;
      for (const Variable& input : owner.inputs()) {
        if (input.type().shape == value.type().shape && input.dtype() == value.dtype()) {
          pending.push_back(input);
        }
      }
    }
  }

  // The root of the memory that v lies in, following the first alias.
  const VariableNode* memory_of(const Variable& start) {
    const VariableNode* root = nullptr;
    for (Variable v = start; !root;) {
      const auto known = memory_.find(v.node());
      const Apply owner = v.owner();
      std::set<int> from;
      if (known == memory_.end() && owner.defined() && graph_.contains(owner)) {
        from = alias_inputs(owner.op().view_map(owner), v.index());
        if (from.empty()) from = alias_inputs(owner.op().destroy_map(owner), v.index());
      }
      if (known != memory_.end()) {
        root = known->second;
      } else if (from.empty()) {
        root = v.node();
      } else {
        v = owner.input(static_cast<std::size_t>(*from.begin()));
      }
    }
    // What comes before the node in hand does not change any more in this sweep.
    memory_.emplace(start.node(), root);
    return root;
  }

  static double size_of(const Variable& v) {
    double elements = 1;
    for (index_t extent : v.type().shape) {
      elements *= extent == kUnknown ? 1e3 : static_cast<double>(extent);
    }
    return elements * static_cast<double>(item_size(v.dtype()));
  }

  std::vector<int> candidates(const Apply& node) {
    std::vector<int> inputs(node.input_count());
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<int>(i);
    const auto rank = [&](int i) {
      const Variable& v = node.input(static_cast<std::size_t>(i));
      const auto wanted = wanted_.find(node.output(0).node());
      const bool realizes = wanted != wanted_.end() && memory_of(v) == wanted->second;
      return std::pair(realizes ? 0 : 1, -size_of(v));
    };
    std::stable_sort(inputs.begin(), inputs.end(), [&](int a, int b) { return rank(a) < rank(b); });
    return inputs;
  }

  bool try_input(const Apply& node, int input) {
    const OpPtr inplace = node.op().inplace_on_inputs(node, {input});
    if (!inplace) return false;
    const Apply with = inplace->make_node(node.inputs());
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      with.output(k).node()->name = node.output(k).name();
      with.output(k).tags() = node.output(k).tags();
      pairs.emplace_back(node.output(k), with.output(k));
      const auto wanted = wanted_.find(node.output(k).node());
      if (wanted != wanted_.end()) wanted_.emplace(with.output(k).node(), wanted->second);
    }
    try {
      graph_.replace_all_validate(pairs, "run_in_place");
      kept_.insert(kept_.end(), {node, with});
      return true;
    } catch (const InconsistencyError&) {
      kept_.push_back(with);
      return false;
    }
  }

  FunctionGraph& graph_;
  std::unordered_map<const VariableNode*, const VariableNode*> wanted_;
  std::unordered_map<const VariableNode*, const VariableNode*> memory_;
  std::vector<Apply> kept_;  // so that no address in wanted_ is used twice
};

}  // namespace

int run_in_place(FunctionGraph& graph, const RewriteHints& hints) {
  return InplacePass(graph, hints).run();
}

}  // namespace palimpsest
