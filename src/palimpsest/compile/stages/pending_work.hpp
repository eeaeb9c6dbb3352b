// SPDX-License-Identifier: Apache-2.0
// Internal: bookkeeping of a run in stages.
#pragma once

#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/graph/op.hpp"

namespace palimpsest {

/// The applications of a graph that a run has not done yet: the extents of their values as far as
/// they are known, how often each value is still read, and which decisions are due.
///
/// A decision is an application whose elements of inputs decide extents, or a choice between values
/// of unknown or different extents (an open choice). Applications that only a branch of an open
/// choice needs are not needed yet: a misfit in them is no error.
///
/// Cost  of a whole run: proportional to the graph
class PendingWork {
 public:
  PendingWork(std::span<const Variable> inputs, std::span<const Variable> outputs);

  /// Tells the extents of an input of the graph, or of a value that was computed.
  void know(const Variable& v, const Extents& extents);
  /// After the inputs are known: the outputs are needed.
  void need(std::span<const Variable> outputs);
  /// Decisions that are needed and were not returned before, in the order of the graph.
  /// Errors  that of an application which is needed and does not fit its inputs
  std::vector<Apply> next_decisions();

  /// The variable that stands for v after the choices made so far.
  Variable resolved(const Variable& v) const;
  /// Applications and outputs that read it, those counted that read a choice it stands for.
  int read_count(const Variable& v) const;

  /// The outputs of an open choice are these values from now on. Returns values as finish() does.
  std::vector<Variable> choose(const Apply& node, std::span<const Variable> values);
  /// These have been computed. Returns the values that nothing reads any more.
  std::vector<Variable> finish(std::span<const Apply> nodes);

 private:
  struct Value {
    std::optional<Extents> extents;
    int n_reads = 0;
    bool is_needed = false;
    std::vector<std::size_t> readers;  // applications, one entry for each input
    std::vector<Variable> choices;     // values that it stands for, until its extents are known
  };
  struct Step {
    Apply node;
    std::size_t n_unknown = 0;  // inputs of unknown extents
    bool is_done = false, is_needed = false, is_undecided = false;
    std::exception_ptr misfit = nullptr;  // the inputs do not fit
  };
  using Known = std::pair<Variable, Extents>;

  Value& at(const Variable& v) { return *values_.find(v.node()); }
  const Value& at(const Variable& v) const { return *values_.find(v.node()); }
  Step& step_of(const Apply& node) { return steps_[*numbers_.find(node.node())]; }
  const Extents* extents_of(const Variable& v) const;
  void infer(std::size_t number, std::vector<Known>& known);
  bool is_open_choice(const Apply& node) const;
  bool is_ready(const Step& step) const;

  std::vector<Step> steps_;  // inputs before users
  PointerMap<const ApplyNode, std::size_t> numbers_;
  PointerMap<const VariableNode, Value> values_;  // all but constants
  mutable PointerMap<const VariableNode, Variable> stands_for_;
  std::vector<std::size_t> due_;  // steps that may have become decisions
};

}  // namespace palimpsest
