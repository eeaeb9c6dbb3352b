// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/guards.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

const ops::IfElse* ifelse_of(const Apply& node) {
  return node.defined() ? dynamic_cast<const ops::IfElse*>(&node.op()) : nullptr;
}

}  // namespace

Branches::Branches(const FunctionGraph& graph, std::vector<Apply>& order, Needs needs,
                   const Nodes& whole) {
  if (std::none_of(order.begin(), order.end(), ifelse_of)) return;
  for (auto node = order.rbegin(); node != order.rend(); ++node) assign(graph, *node, needs, whole);
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

// The branch of this depth around a branch, or itself.
int Branches::at_depth(int branch, int depth) const {
  while (this->depth(branch) > depth) {
    const Branch& at = (*this)[branch];
    branch = this->depth(at.jump) >= depth ? at.jump : at.parent;
  }
  return branch;
}

bool Branches::is_within(int inner, int outer) const {
  return at_depth(inner, depth(outer)) == outer;
}

int Branches::around(int a, int b) const {
  a = at_depth(a, depth(b));
  b = at_depth(b, depth(a));
  while (a != b) {
    const Branch &of_a = (*this)[a], &of_b = (*this)[b];  // of one depth, so are the jumps
    const bool jumps = of_a.jump != of_b.jump;
    a = jumps ? of_a.jump : of_a.parent;
    b = jumps ? of_b.jump : of_b.parent;
  }
  return a;
}

// The branch of a node that both branches need: it lies under all conditions that both have.
int Branches::common(int a, int b) {
  const int outer = around(a, b);
  std::map<std::pair<const VariableNode*, bool>, int> of_b;
  for (int k = b; k != outer; k = (*this)[k].parent) {
    ++of_b[{(*this)[k].condition.node(), (*this)[k].when}];
  }
  std::vector<Branch> shared;  // innermost first
  for (int i = a; i != outer && !of_b.empty(); i = (*this)[i].parent) {
    const Branch& branch = (*this)[i];
    const auto it = of_b.find({branch.condition.node(), branch.when});
    if (it != of_b.end()) shared.insert(shared.end(), at(it->second), branch);
  }
  int result = outer;
  for (auto branch = shared.rbegin(); branch != shared.rend(); ++branch) {
    result = add(branch->condition, branch->when, result);
  }
  return result;
}

int Branches::add(const Variable& condition, bool when, int parent) {
  const auto number = static_cast<int>(list_.size());
  const auto [it, is_new] = by_condition_.try_emplace({parent, condition.node(), when}, number);
  if (!is_new) return it->second;
  Branch branch{condition, when, parent, depth(parent) + 1, parent};
  // Jumps of two equal lengths in a row make one of both.
  const int jump = parent < 0 ? -1 : (*this)[parent].jump;
  const int next = jump < 0 ? -1 : (*this)[jump].jump;
  if (jump >= 0 && depth(parent) - depth(jump) == depth(jump) - depth(next)) branch.jump = next;
  list_.push_back(std::move(branch));
  return it->second;
}

int Branches::add(const Apply& node, bool when) {
  const int branch = add(node.input(0), when, of(node));
  by_node_.try_emplace(node.node(), std::array{-1, -1}).first->second[when ? 1 : 0] = branch;
  return branch;
}

// Nodes come after all that use them, so the branches of the users are known.
void Branches::assign(const FunctionGraph& graph, const Apply& node, Needs needs,
                      const Nodes& whole) {
  std::optional<int> branch;
  std::vector<int> needed_in;  // the branches of users that are never idle
  for (const Variable& v : node.outputs()) {
    for (const Use& use : graph.uses(v)) {
      int needed_by = -1;
      bool is_needed = true;
      const ops::IfElse* const op = ifelse_of(use.node);
      if (op && use.index > 0 && !whole.contains(use.node.node())) {
        needed_by = add(use.node, use.index <= static_cast<int>(op->count()));
      } else if (use.node.defined()) {
        is_needed = needs == Needs::extents_too || use.node.op().uses_elements(use.node, use.index);
        needed_by = of(use.node);
      }
      if (is_needed) branch = branch ? common(*branch, needed_by) : needed_by;
      if (!use.node.defined() || !may_be_idle(use.node)) needed_in.push_back(needed_by);
    }
  }
  if (std::find(needed_in.begin(), needed_in.end(), branch.value_or(-1)) == needed_in.end()) {
    idle_.insert(node.node());
  }
  if (branch.value_or(-1) >= 0) of_[node.node()] = *branch;
}

// Moving a node that overwrites nothing forward keeps the constraints of memory, as long as the
// nodes that it reads from move with it.
void Branches::hoist_conditions(std::vector<Apply>& order) const {
  std::unordered_map<const ApplyNode*, std::size_t> places;
  std::vector<std::size_t> firsts;  // place of the first node of each branch
  const auto number = [&] {
    firsts.assign(list_.size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      places[order[i].node()] = i;
      if (const int b = of(order[i]); b >= 0) firsts[at(b)] = std::min(firsts[at(b)], i);
    }
    for (std::size_t b = list_.size(); b-- > 0;) {  // inner ones have the higher numbers
      const int parent = list_[b].parent;
      if (parent >= 0) firsts[at(parent)] = std::min(firsts[at(parent)], firsts[b]);
    }
  };
  number();
  for (std::size_t b = 0; b < list_.size(); ++b) {
    // Needs of the condition among the nodes from the first one of the branch on. The inputs of
    // earlier ones are earlier too.
    std::vector<Apply> open{list_[b].condition.owner()};
    Nodes needed;
    bool can_move = true;
    while (!open.empty()) {
      const Apply node = open.back();
      open.pop_back();
      const auto place = node.defined() ? places.find(node.node()) : places.end();
      if (place == places.end() || place->second < firsts[b]) continue;
      if (!needed.insert(node.node()).second) continue;
      can_move &= overwritten_inputs(node).empty() && !is_within(of(node), static_cast<int>(b));
      for (const Variable& v : node.inputs()) open.push_back(v.owner());
    }
    if (needed.empty() || !can_move) continue;
    std::stable_partition(order.begin() + static_cast<std::ptrdiff_t>(firsts[b]), order.end(),
                          [&](const Apply& node) { return needed.contains(node.node()); });
    number();
  }
}

// Takes a node out of branches whose condition is known only after it: it runs whenever the
// surrounding branch does.
void Branches::drop_late_conditions(const std::vector<Apply>& order) {
  std::unordered_map<const ApplyNode*, std::size_t> places;
  for (std::size_t i = 0; i < order.size(); ++i) places[order[i].node()] = i + 1;
  const auto known_from = [&](const Variable& v) {
    if (!v.owner().defined()) return std::size_t{0};
    const auto it = places.find(v.owner().node());
    return it == places.end() ? order.size() + 1 : it->second;
  };
  std::vector<std::size_t> own,
      nested;  // place after which a condition is known: its own; with those around it
  for (const Branch& branch : list_) {
    own.push_back(known_from(branch.condition));
    nested.push_back(branch.parent < 0 ? own.back()
                                       : std::max(own.back(), nested[at(branch.parent)]));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    int branch = of(order[i]), kept = branch;
    for (; branch >= 0 && nested[at(branch)] > i; branch = (*this)[branch].parent) {
      if (own[at(branch)] > i) kept = (*this)[branch].parent;
    }
    if (of(order[i]) == kept) continue;
    of_[order[i].node()] = kept;
    idle_.insert(order[i].node());
  }
}

}  // namespace palimpsest
