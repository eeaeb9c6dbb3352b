// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>

#include "palimpsest/ops/loop/extents.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest {
class FunctionGraph;
}

namespace palimpsest::ops {

/// Parts of a loop. `inner` variables are roots of the body, the others values around it.
struct LoopParts {
  /// An array. Step t of n reads row `offset + t`, or `offset + n - 1 - t` if reversed.
  struct Read {
    Variable array;
    index_t offset = 0;
    bool reversed = false;
    index_t tail = kUnknown;  // rows after the last one that is read, if there must be so many
    Variable inner;
  };
  struct State {
    Variable init;  // the value before the first step; of several rows that many, oldest first
    index_t rows = 1;
    std::vector<index_t> lags;    // inner[i] is the value lags[i] steps ago
    std::vector<Variable> inner;  // of one type
    Variable next;
    bool has_history = true;  // an output with the rows of init and then the value of every step
    bool has_last = true;     // an output with the last value
    // The last value is to lie in the memory of init; only of one row and without history.
    bool overwrites_init = false;
    /// True if a step may compute the new value in the memory of the old one, which nothing else
    /// looks at.
    bool is_replaced() const { return rows == 1 && !has_history && inner.size() == 1; }
  };
  struct Captured {
    Variable outer, inner;
  };

  std::vector<Read> reads;
  std::vector<State> states;
  std::vector<Captured> captured;
  std::vector<Variable> mapped;
  Variable until;       // bool (): no further step; undefined: none
  ExtentProgram steps;  // how many, from the extents of step_arrays; less than 0 is 0
  std::vector<Variable> step_arrays;
  Variable count;  // int64 (): how many, known only when it runs; then `steps` is not used
  /// Histories and mapped values have rows for all steps, although `until` may end the loop
  /// earlier; those that are left are zero.
  bool keeps_room = false;

  /// True if the number of steps is known only at the end of a run.
  bool is_open() const { return count.defined() || (until.defined() && !keeps_room); }
  std::vector<Variable> inner_inputs() const;
  std::vector<Variable> inner_outputs() const;
};

/// A repeated body. Inputs: the arrays of the reads, the inits, the captured values, the arrays
/// whose extents give the number of steps, and the number of steps if it is a value.
/// Outputs: history and last value of each state where wanted, the mapped values, and the number
/// of steps if there is `until`.
///
/// Aliases  in place: last values lie in the memory of inits. Run by the executor of functions
///          only, which plans the body
class Loop final : public Op {
 public:
  /// Errors  TypeError, ShapeError: inner and outer types do not fit
  static Apply make(LoopParts parts);
  /// The structure; its outer variables are undefined.
  const LoopParts& structure() const { return parts_; }
  /// The parts, with the outer variables of this application.
  LoopParts parts(const Apply& apply) const;

  const std::vector<Variable>& body_inputs() const { return body_inputs_; }
  const std::vector<Variable>& body_outputs() const { return body_outputs_; }
  // Positions among the inputs; arrays of reads come first.
  std::size_t init_input(std::size_t k) const { return parts_.reads.size() + k; }
  std::size_t captured_input(std::size_t j) const {
    return parts_.reads.size() + parts_.states.size() + j;
  }
  std::size_t count_input() const {
    return captured_input(parts_.captured.size()) + parts_.step_arrays.size();
  }
  // Positions among the outputs; nothing for outputs that are not wanted.
  std::optional<std::size_t> history_output(std::size_t k) const;
  std::optional<std::size_t> last_output(std::size_t k) const;
  std::size_t mapped_output(std::size_t m) const;
  std::size_t count_output() const { return mapped_output(parts_.mapped.size()); }

  /// The number of steps, or with `until` the most there can be; nothing if it is a value or
  /// depends on an unknown extent.
  std::optional<index_t> n_steps(std::span<const Extents> inputs) const;
  /// False if extents of results, and of values in the body, follow from those of the inputs.
  bool may_decide_extents() const;
  /// True if the body can be planned once for all steps, extents included.
  bool has_known_body(std::span<const Extents> inputs) const;

  std::string name() const override { return overwrites_any() ? "LoopInPlace" : "Loop"; }
  std::string parameters() const override { return text_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap destroy_map(const Apply& apply) const override;
  Region view_region(const Apply& apply, int out, int in) const override;
  IndexPairs tolerate_aliased(const Apply& apply) const override;
  OpPtr inplace_on_inputs(const Apply& apply, const std::set<int>& allowed) const override;
  OpPtr pure() const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::span<const Variable> inner_results() const override { return body_outputs_; }
  bool uses_elements(const Apply&, int in) const override;
  bool can_fail() const override { return can_fail_; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  std::vector<Variable> pushforward(const Apply& apply,
                                    std::span<const Variable> tangents) const override;
  void run(RunContext& context) const override;

 private:
  explicit Loop(LoopParts parts);
  bool overwrites_any() const;
  struct BodyExtents {
    std::vector<Extents> of_results;
    bool are_known = true;  // all of them, and those of all values in the body
  };
  BodyExtents body_extents(std::span<const Extents> inputs) const;
  /// True if the number of rows of a result is known only at the end of a run.
  bool has_open_rows() const;
  /// Extents of the outputs, and whether they and those of all values in the body are known.
  std::pair<std::vector<Extents>, bool> infer(std::span<const Extents> inputs) const;
  void check_lengths(std::span<const Extents> inputs, std::optional<index_t> n) const;

  LoopParts parts_;
  std::vector<Variable> body_inputs_, body_outputs_;
  std::vector<Apply> body_nodes_;
  std::vector<std::size_t> first_output_;  // per state, then of the other outputs
  std::string text_;
  bool can_fail_;
};

/// The same loop with only the used outputs and the parts that they need. For each old output the
/// variable to use instead; undefined where it is not used.
std::vector<Variable> without_unused(const Apply& loop, const std::vector<bool>& is_used);
/// Leaves out reads and captured values that the body does not look at.
void drop_unread(LoopParts& parts);
/// Removes unused parts from the loops of a graph; returns the number of changed loops.
int drop_unused_of_loops(FunctionGraph& graph);
/// Computes the same value by loops without their unused parts.
Variable without_unused_of_loops(const Variable& v);
/// Applies the op to other inputs with no input overwritten, in the bodies of loops neither.
Apply pure_twin(const Apply& node, std::span<const Variable> inputs);
/// The same loop with another graph for its body.
Apply with_body(const Apply& loop, std::span<const Variable> inputs,
                std::span<const Variable> outputs);

}  // namespace palimpsest::ops
