// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest {

/// One use of a variable: input `index` of `node`, or output `index` of the graph when `node` is
/// undefined.
struct Use {
  Apply node;
  int index = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

/// Why a graph is not consistent (inplace.md 4).
enum class InconsistencyKind {
  none,
  destroys_constant,
  destroys_indestructible,
  destroys_protected,
  destroys_output,
  input_aliasing,
  multiple_destroyers,
  ordering_cycle,
  transaction,
};
std::string_view name_of(InconsistencyKind kind);

struct Inconsistency {
  InconsistencyKind kind = InconsistencyKind::none;
  Apply node;         // the destroyer
  Variable variable;  // what it destroys or what overlaps it
  std::string text;   // names both
  explicit operator bool() const { return kind != InconsistencyKind::none; }
};

/// A graph that is being compiled: nodes, uses of each variable, protection, edits with exact
/// rollback. It owns clones, so nothing that a user holds changes.
///
/// Invariants
///  1. nodes() holds exactly the applications that some output needs.
///  2. uses(v) lists every use of v by a node of the graph or as an output, in order of arrival.
///  3. An edit that throws leaves 1 and 2, their order included, as they were.
class FunctionGraph {
 public:
  struct Options {
    bool clone = true;
  };
  /// MissingInputError for a root that is neither among the inputs nor a constant.
  FunctionGraph(std::vector<Variable> inputs, std::vector<Variable> outputs, Options options);
  FunctionGraph(std::vector<Variable> inputs, std::vector<Variable> outputs)
      : FunctionGraph(std::move(inputs), std::move(outputs), Options{}) {}

  const std::vector<Variable>& inputs() const { return inputs_; }
  const std::vector<Variable>& outputs() const { return outputs_; }
  std::size_t node_count() const { return nodes_.size(); }
  bool contains(const Apply& node) const { return nodes_.contains(node.node()); }
  const std::vector<Use>& uses(const Variable& v) const;
  bool is_output(const Variable& v) const;

  /// All nodes, each after what it reads and after every reader of what it overwrites;
  /// deterministic. InconsistencyError when no such order exists.
  std::vector<Apply> toposort() const;
  /// Pairs of nodes of which the first must precede the second although it computes nothing for
  /// it. Those that follow from others need not be among them.
  std::vector<std::pair<Apply, Apply>> order_constraints() const;

  /// Inputs that must keep their value: those not lent to the function.
  void protect(const Variable& v) { protected_.insert(v.node()); }
  void unprotect(const Variable& v) { protected_.erase(v.node()); }
  bool is_protected(const Variable& v) const { return protected_.contains(v.node()); }
  /// Inputs that a failed run must leave as they were: what overwrites them comes after every step
  /// that can fail.
  void overwrite_last(const Variable& v) { overwritten_last_.insert(v.node()); }

  /// Redirects all uses that `old` has in the graph. Aliasing is not checked.
  /// Errors  TypeError: new is not of old's type; MissingInputError; CycleError
  void replace(const Variable& old, const Variable& with, std::string_view reason = {});
  void replace_all(std::span<const std::pair<Variable, Variable>> pairs,
                   std::string_view reason = {});
  /// The same, then validate(); when that throws, the graph is as before.
  void replace_all_validate(std::span<const std::pair<Variable, Variable>> pairs,
                            std::string_view reason = {});
  void replace_validate(const Variable& old, const Variable& with, std::string_view reason = {});

  /// Throws InconsistencyError when a destroyed value may still be read or must not be destroyed.
  void validate() const;
  /// The first fault, if any.
  Inconsistency check() const;
  bool consistent() const { return !check(); }
  /// The nodes that overwrite memory in which v lies.
  std::vector<Apply> destroyers(const Variable& v) const;

  std::string str() const;

 private:
  struct Constraint {
    const ApplyNode* before;
    const ApplyNode* after;
    bool operator==(const Constraint&) const = default;
  };
  // Everything that an edit changes, so that undoing it is exact.
  struct Snapshot {
    std::vector<Variable> outputs;
    std::unordered_map<const ApplyNode*, std::pair<Apply, std::size_t>> nodes;
    std::unordered_map<const VariableNode*, std::vector<Use>> uses;
    std::size_t next_position = 0;
    std::vector<std::pair<Use, Variable>> replaced_inputs;
  };
  struct Fault;

  Snapshot snapshot() const;
  void restore(Snapshot&& before);
  void import_variable(const Variable& v);
  void redirect(const Variable& old, const Variable& with, Snapshot& before);
  void prune(const Variable& v);
  void edit(std::span<const std::pair<Variable, Variable>> pairs, bool validated);
  std::vector<Apply> nodes_in_order() const;
  std::vector<Apply> sorted(std::span<const Constraint> constraints,
                            std::vector<Apply>* cycle) const;
  std::unordered_set<const VariableNode*> alias_closure(std::vector<Variable> from, bool upward,
                                                        std::vector<Variable>* members) const;
  Inconsistency collect(std::vector<Constraint>& constraints) const;
  Inconsistency find_cycle(std::span<const Constraint> constraints,
                           std::size_t n_without_transactions) const;

  std::vector<Variable> inputs_, outputs_;
  // Each node with its arrival number, which orders faults.
  std::unordered_map<const ApplyNode*, std::pair<Apply, std::size_t>> nodes_;
  std::unordered_map<const VariableNode*, std::vector<Use>> uses_;
  std::unordered_set<const VariableNode*> protected_, overwritten_last_;
  std::size_t next_position_ = 0;
};

}  // namespace palimpsest
