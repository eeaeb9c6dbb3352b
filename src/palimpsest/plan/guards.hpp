// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {

/// Steps that run only if a condition has this value.
struct Branch {
  Variable condition;
  bool when = true;
  int parent = -1;  // the branch that it lies in; -1: none
  int depth = 0;    // number of branches around it
  int jump = -1;    // one of these, chosen so that any is found in O(log depth) steps
};

/// Steps that only one branch of an ifelse needs. A node belongs to a branch if every use of its
/// elements is the branch's value or belongs to the branch. All steps that one condition decides in
/// one place form one branch, for any number of ifelse ops. A step that several branches need
/// belongs to all conditions that they have in common.
class Branches {
 public:
  /// Uses of a value that need it: those of its elements, or also those of its extents, where these
  /// are known with the value only.
  enum class Needs { elements, extents_too };
  using Nodes = std::unordered_set<const ApplyNode*>;
  /// Moves the inputs of conditions in front of the branches' steps if data and memory allow; if
  /// not, the steps run in any case. An ifelse of `whole` needs both of its values.
  Branches(const FunctionGraph& graph, std::vector<Apply>& order, Needs needs = Needs::elements,
           const Nodes& whole = {});

  bool empty() const { return list_.empty(); }
  /// The innermost branch of a node; -1: it runs in any case.
  int of(const Apply& node) const;
  const Branch& operator[](int branch) const { return list_[static_cast<std::size_t>(branch)]; }
  /// True if it may run although nothing needs it: only inner branches of several conditions need
  /// it, or the condition of its branch is known after it.
  bool may_be_idle(const Apply& node) const { return idle_.contains(node.node()); }
  /// The branch of this ifelse; -1 if it has no steps.
  int find(const Apply& node, bool when) const;
  /// True if `inner` is the branch `outer` or lies within it. Everything is within -1.
  /// Cost  O(log depth)
  bool is_within(int inner, int outer) const;
  /// The innermost branch that both are within. Cost  O(log depth)
  int around(int a, int b) const;

 private:
  int add(const Variable& condition, bool when, int parent);
  int add(const Apply& node, bool when);
  int common(int a, int b);
  int depth(int branch) const { return branch < 0 ? -1 : (*this)[branch].depth; }
  int at_depth(int branch, int depth) const;
  void assign(const FunctionGraph& graph, const Apply& node, Needs needs, const Nodes& whole);
  void hoist_conditions(std::vector<Apply>& order) const;
  void drop_late_conditions(const std::vector<Apply>& order);

  std::vector<Branch> list_;
  std::unordered_map<const ApplyNode*, int> of_;
  std::unordered_set<const ApplyNode*> idle_;
  std::unordered_map<const ApplyNode*, std::array<int, 2>> by_node_;  // for false and for true
  std::map<std::tuple<int, const VariableNode*, bool>, int> by_condition_;
};

}  // namespace palimpsest
