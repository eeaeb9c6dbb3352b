// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/guards.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "palimpsest/ops/control/control_op.hpp"

namespace palimpsest {
namespace {

const ops::IfElse* ifelse_of(const Apply& node) {
  return node.defined() ? dynamic_cast<const ops::IfElse*>(&node.op()) : nullptr;
}

using Nodes = std::unordered_set<const ApplyNode*>;

}  // namespace

Branches::Branches(const FunctionGraph& graph, std::vector<Apply>& order) {
  if (std::none_of(order.begin(), order.end(), ifelse_of)) return;
  for (auto node = order.rbegin(); node != order.rend(); ++node) assign(graph, *node);
  hoist_conditions(order);
  drop_late_conditions(order);
}

int Branches::of(const Apply& node) const {
  const auto it = of_.find(node.node());
  return it == of_.end() ? -1 : it->second;
}

int Branches::find(const Apply& node, bool when) const {
  const auto it = by_node_.find(node.node());
  return it == by_node_.end() ? -1 : it->second[when ? 1 : 0];
}

bool Branches::is_within(int inner, int outer) const {
  while (inner != outer && inner >= 0) inner = (*this)[inner].parent;
  return inner == outer;
}

int Branches::around(int a, int b) const {
  while (!is_within(b, a)) a = (*this)[a].parent;
  return a;
}

// The branch of a node that both branches need: it lies under all conditions that both have.
int Branches::common(int a, int b) {
  const int outer = around(a, b);
  std::vector<Branch> shared;  // innermost first
  for (int i = a; i != outer; i = (*this)[i].parent) {
    for (int k = b; k != outer; k = (*this)[k].parent) {
      const Branch &of_a = (*this)[i], &of_b = (*this)[k];
      if (of_a.condition == of_b.condition && of_a.when == of_b.when) shared.push_back(of_a);
    }
  }
  int result = outer;
  for (auto branch = shared.rbegin(); branch != shared.rend(); ++branch) {
    result = add(branch->condition, branch->when, result);
  }
  return result;
}

int Branches::add(const Variable& condition, bool when, int parent) {
  const auto next = static_cast<int>(list_.size());
  const auto [it, is_new] = by_condition_.try_emplace({parent, condition.node(), when}, next);
  if (is_new) list_.push_back({condition, when, parent});
  return it->second;
}

int Branches::add(const Apply& node, bool when) {
  const int branch = add(node.input(0), when, of(node));
  by_node_.try_emplace(node.node(), std::array{-1, -1}).first->second[when ? 1 : 0] = branch;
  return branch;
}

// Nodes come after all that use them, so the branches of the users are known.
void Branches::assign(const FunctionGraph& graph, const Apply& node) {
  std::optional<int> branch;
  for (const Variable& v : node.outputs()) {
    for (const Use& use : graph.uses(v)) {
      int needed_by = -1;
      if (const ops::IfElse* op = ifelse_of(use.node); op && use.index > 0) {
        needed_by = add(use.node, use.index <= static_cast<int>(op->count()));
      } else if (use.node.defined()) {
        if (!use.node.op().uses_elements(use.node, use.index)) continue;
        needed_by = of(use.node);
      }
      branch = branch ? common(*branch, needed_by) : needed_by;
    }
  }
  if (branch.value_or(-1) >= 0) of_[node.node()] = *branch;
}

// Moving a node that overwrites nothing forward keeps the constraints of memory, as long as the
// nodes that it reads from move with it.
void Branches::hoist_conditions(std::vector<Apply>& order) const {
  for (std::size_t b = 0; b < list_.size(); ++b) {
    const Branch& branch = list_[b];
    const auto belongs = [&](const Apply& node) {
      return is_within(of(node), static_cast<int>(b));
    };
    const auto first = std::find_if(order.begin(), order.end(), belongs);
    const Variable& condition = branch.condition;
    Nodes needed;
    for (const Apply& node : applications_of({&condition, 1})) needed.insert(node.node());
    const auto is_needed = [&](const Apply& node) { return needed.contains(node.node()); };
    const bool can_move = std::none_of(first, order.end(), [&](const Apply& node) {
      return is_needed(node) && (!overwritten_inputs(node).empty() || belongs(node));
    });
    if (can_move) std::stable_partition(first, order.end(), is_needed);
  }
}

// Takes a node out of branches whose condition is known only after it: it runs whenever the
// surrounding branch does.
void Branches::drop_late_conditions(const std::vector<Apply>& order) {
  Nodes done;
  const auto is_known = [&](const Variable& v) {
    return !v.owner().defined() || done.contains(v.owner().node());
  };
  for (const Apply& node : order) {
    int branch = of(node), kept = branch;
    for (; branch >= 0; branch = (*this)[branch].parent) {
      if (!is_known((*this)[branch].condition)) kept = (*this)[branch].parent;
    }
    if (of(node) >= 0) of_[node.node()] = kept;
    done.insert(node.node());
  }
}

}  // namespace palimpsest
