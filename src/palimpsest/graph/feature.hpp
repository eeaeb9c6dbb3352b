// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/op.hpp"

namespace PALIMPSEST_API palimpsest {

class FunctionGraph;

/// A use of a variable: input `index` of `node`, or output `index` of the graph when `node` is
/// undefined.
struct Use {
  Apply node;
  int index = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

/// Observer of the edits of a graph. Undoing an edit calls the opposite members in reverse order:
/// the counts of a feature are exact after every rollback.
///
/// Contract  on_import, on_prune and on_change_input do not change the graph and do not throw
class Feature {
 public:
  virtual ~Feature() = default;
  virtual void on_import(const FunctionGraph&, const Apply&, std::string_view) {}
  virtual void on_prune(const FunctionGraph&, const Apply&, std::string_view) {}
  /// `use` no longer reads `old` but `with`.
  virtual void on_change_input(const FunctionGraph&, const Use&, const Variable&, const Variable&,
                               std::string_view) {}
  /// Vetoes the graph by throwing an InconsistencyError of the kind refused_by_feature.
  virtual void on_validate(const FunctionGraph&) {}
  /// Pairs of nodes of the graph: the first of each must precede the second.
  virtual std::vector<std::pair<Apply, Apply>> orderings(const FunctionGraph&) { return {}; }
};

/// Remembers each change of an input and goes back and forth among the states in between.
class History final : public Feature {
 public:
  void on_change_input(const FunctionGraph& graph, const Use& use, const Variable& old,
                       const Variable& with, std::string_view reason) override;
  std::size_t size() const { return changes_.size(); }
  /// Number of changes in force.
  std::size_t step() const { return step_; }
  void start(FunctionGraph& graph) { goto_step(graph, 0); }
  void end(FunctionGraph& graph) { goto_step(graph, changes_.size()); }
  void prev(FunctionGraph& graph) { goto_step(graph, step_ == 0 ? 0 : step_ - 1); }
  void next(FunctionGraph& graph) { goto_step(graph, step_ + 1); }
  /// A step past either end counts as that end.
  void goto_step(FunctionGraph& graph, std::size_t step);

 private:
  struct Change {
    Use use;
    Variable old, with;
    friend bool operator==(const Change&, const Change&) = default;
  };
  std::vector<Change> changes_;
  std::size_t step_ = 0;
  bool is_moving_ = false;
};

/// These outputs of the graph are not computed by a node that overwrites something.
class NoOutputFromInplace final : public Feature {
 public:
  explicit NoOutputFromInplace(std::set<int> outputs) : outputs_(std::move(outputs)) {}
  void on_validate(const FunctionGraph& graph) override;

 private:
  std::set<int> outputs_;
};

/// These outputs do not lie in the memory of an input of the graph.
class NoOutputInplaceOnInput final : public Feature {
 public:
  explicit NoOutputInplaceOnInput(std::set<int> outputs) : outputs_(std::move(outputs)) {}
  void on_validate(const FunctionGraph& graph) override;

 private:
  std::set<int> outputs_;
};

/// Gives a variable without a name the name of the variable that it replaces.
class PreserveNames final : public Feature {
 public:
  void on_change_input(const FunctionGraph& graph, const Use& use, const Variable& old,
                       const Variable& with, std::string_view reason) override;
};

}  // namespace palimpsest
