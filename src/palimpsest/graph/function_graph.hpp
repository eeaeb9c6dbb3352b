// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/feature.hpp"
#include "palimpsest/graph/inconsistency.hpp"
#include "palimpsest/graph/op.hpp"

namespace PALIMPSEST_API palimpsest {

namespace graph_detail {
class GraphState;
}

/// A graph that is being compiled: nodes, uses of each variable, protection, edits with exact
/// rollback, and the analysis of overwrites, updated by each edit. It owns clones, so it changes no
/// variable of the user.
///
/// Invariants
///  1. Its nodes are exactly the applications that some output needs.
///  2. uses(v) lists every use of v by a node of the graph or as an output, in order of arrival.
///  3. An edit that throws leaves 1 and 2, their order included, and all features as they were.
/// Tags   a variable's is_indestructible takes effect when its surroundings change: set it before
///        the variable enters the graph
/// Cost   an edit: proportional to the uses that it touches; O(1) per use without overwritten
///        variables nearby. check() and consistent(): O(1) for a consistent graph
class FunctionGraph {
 public:
  struct Options {
    bool clone = true;
    /// False: any two views of one variable count as overlapping, whichever parts they show.
    bool alias_regions = true;
  };
  using Pairs = std::span<const std::pair<Variable, Variable>>;
  using Token = std::size_t;

  /// MissingInputError for a root that is neither among the inputs nor a constant.
  FunctionGraph(std::vector<Variable> inputs, std::vector<Variable> outputs, Options options);
  FunctionGraph(std::vector<Variable> inputs, std::vector<Variable> outputs)
      : FunctionGraph(std::move(inputs), std::move(outputs), Options{}) {}
  FunctionGraph(FunctionGraph&&) noexcept;
  FunctionGraph& operator=(FunctionGraph&&) noexcept;
  ~FunctionGraph();

  const std::vector<Variable>& inputs() const;
  const std::vector<Variable>& outputs() const;
  std::size_t node_count() const;
  bool contains(const Apply& node) const;
  std::vector<Use> uses(const Variable& v) const;
  std::size_t use_count(const Variable& v) const;
  bool is_input(const Variable& v) const;
  bool is_output(const Variable& v) const;

  /// All nodes, each behind the nodes that it reads from and behind every reader of the values that
  /// it overwrites; deterministic. InconsistencyError when no such order exists.
  std::vector<Apply> toposort() const;
  /// Pairs of nodes with an order between them: the first precedes the second although it computes
  /// nothing for it. Pairs that follow from others may be missing.
  std::vector<std::pair<Apply, Apply>> order_constraints() const;

  /// Variables that must keep their value: the inputs not lent to a function.
  void protect(const Variable& v);
  void unprotect(const Variable& v);
  bool is_protected(const Variable& v) const;
  /// Protects an input from failed runs: nodes that overwrite it come after every node that can
  /// fail.
  /// Errors  ValueError: not an input of the graph
  void overwrite_last(const Variable& v);
  bool is_overwritten_last(const Variable& v) const;

  /// Redirects all uses that `old` had in the graph before the call. Aliasing is not checked.
  /// Errors  TypeError: new is not of old's type; MissingInputError; CycleError
  void replace(const Variable& old, const Variable& with, std::string_view reason = {});
  void replace_all(Pairs pairs, std::string_view reason = {});
  /// The same, then validate(); when that throws, the graph is as before.
  void replace_validate(const Variable& old, const Variable& with, std::string_view reason = {});
  void replace_all_validate(Pairs pairs, std::string_view reason = {});
  /// The same; ReplaceError if one of the nodes to be removed is still used afterwards.
  void replace_all_validate_remove(Pairs pairs, std::span<const Apply> remove,
                                   std::string_view reason = {});
  /// Redirects one use. Errors  as replace; ValueError: no such use in the graph
  void redirect(const Use& use, const Variable& with, std::string_view reason = {});

  /// Throws InconsistencyError when a destroyed value may still be read or must not be destroyed.
  void validate() const;
  /// The gravest fault, if any, among those the first by arrival of its node. Without features.
  Inconsistency check() const;
  bool consistent() const;
  /// The nodes that overwrite memory of the variables that v is a view of.
  std::vector<Apply> destroyers(const Variable& v) const;
  bool has_destroyers(std::span<const Variable> variables) const;
  /// Number of inputs of nodes that the nodes overwrite. O(1).
  std::size_t overwritten_count() const;

  /// Marks the present state. Changes are remembered from the first mark on until commit().
  Token checkpoint();
  /// Exact return to a marked state; marks made since then end, this one stays.
  /// Errors  ValueError: the mark has ended
  void revert(Token token);
  /// Ends this mark and the newer ones; the state stays.
  void release(Token token);
  /// Ends all marks.
  void commit();

  void add_feature(std::shared_ptr<Feature> feature);
  void remove_feature(const std::shared_ptr<Feature>& feature);
  /// Sets a function that gets one line for each attempted and each refused replacement.
  void set_trace(std::function<void(const std::string&)> sink);

  /// `FunctionGraph(Add(x, y))`.
  std::string str() const;

  const graph_detail::GraphState& state() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace palimpsest
