// SPDX-License-Identifier: Apache-2.0
// Internal: a whole graph, each step isolated.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/inspect/debug/isolated_step.hpp"

namespace palimpsest {

class Branches;

/// Evaluates the nodes of a graph one by one on values of their own, and keeps all values.
class IsolatedPass {
 public:
  /// Layout of the inputs of ops that round by layout. planned: as in the plan, with the bits of
  /// the production pass. dense: dense, so that two graphs of equal values give the same bits.
  enum class Operands { planned, dense };
  /// `reason_of` tells which rewrite introduced a node; empty for those of the user.
  IsolatedPass(const DebugOptions& options, std::string_view name, Operands operands,
               std::function<std::string(const Apply&)> reason_of)
      : options_(options), name_(name), operands_(operands), reason_of_(std::move(reason_of)) {}

  /// Gives an input its value. InvalidValueError when it does not fit its type or is not finite.
  void bind(const Variable& v, const ConstView& value, const std::string& role);
  /// All nodes in the graph's order; `step_of` is their number in the plan, -1 for views.
  void run(const FunctionGraph& graph, const std::function<int(const Apply&)>& step_of);
  /// The value of a variable, even of one that has left the graph. Missing values are evaluated on
  /// dense copies, with poison and guard pages only. Undefined if a needed value belongs to a
  /// branch that is not taken and fails.
  DebugValue evaluate(const Variable& v);

  /// True if an op that rounds by layout had an operand that is not dense in the plan.
  bool has_met_strides() const { return has_met_strides_; }
  /// Largest finite absolute value of any number so far.
  double largest() const;
  bool has(const Variable& v) const { return values_.contains(v.node()); }
  /// The value of a variable that has been evaluated.
  const DebugValue& value(const Variable& v) const { return values_.at(v.node()).value; }

 private:
  void run_nodes(const FunctionGraph& graph, const std::function<int(const Apply&)>& step_of);
  struct Known {
    DebugValue value;
    Layout layout;  // byte offset 0
  };
  const Known& known(const Variable& v);
  bool is_available(const Apply& node) const;
  bool is_taken(const Branches& branches, int branch) const;
  void try_node(const Apply& node, const StepContext& context);
  const Variable& input_for(const Apply& node, std::size_t i) const;
  StepContext context_of(const Apply& node);
  Layout layout_for(const Apply& node, int input, const Known& known);
  void run_node(const Apply& node, const StepContext& context, bool with_patterns);

  const DebugOptions& options_;
  std::string_view name_;
  Operands operands_;
  std::function<std::string(const Apply&)> reason_of_;
  std::unordered_map<const VariableNode*, Known> values_;
  bool has_untaken_ = false;  // branches of an ifelse
  bool has_met_strides_ = false;
  std::unordered_set<const ApplyNode*> failed_;  // nodes that such a branch needs
};

}  // namespace palimpsest
