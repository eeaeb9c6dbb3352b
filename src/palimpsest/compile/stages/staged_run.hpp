// SPDX-License-Identifier: Apache-2.0
// Internal: one run of a StagedProgram.
#pragma once

#include <exception>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "palimpsest/compile/stages/staged.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"

namespace palimpsest {

/// Alternates between two things until all outputs are there: one function for everything that the
/// next decisions need, and the decisions.
class StagedRun {
 public:
  StagedRun(const StagedProgram& program, std::span<const Tensor* const> inputs);
  StagedProgram::Result run();

 private:
  using Nodes = std::unordered_set<const ApplyNode*>;
  // The part of a graph that one function computes. It may overwrite the inputs that are lent.
  struct Piece {
    std::vector<Apply> nodes;
    std::vector<Variable> inputs = {}, outputs = {};
    std::vector<bool> is_lent = {};  // per input
  };

  // -- pending work
  Variable resolved(Variable v) const;
  bool is_known(const Variable& v) const;
  std::vector<Apply> nodes_for(std::span<const Variable> wanted) const;
  std::optional<Extents> extents_of(const Variable& v) const;
  void find_extents(const Apply& node);
  bool is_open_choice(const Apply& node) const;
  void survey();
  void drop_unneeded();
  bool is_ready(const Apply& node) const;
  std::vector<Apply> next_decisions() const;

  // -- doing it
  Piece piece_for(const std::vector<Variable>& wanted) const;
  StagedProgram::Key key_of(const Piece& piece) const;
  Function compiled(const Piece& piece) const;
  void compute(const std::vector<Variable>& wanted);
  void advance(const std::vector<Apply>& decisions);
  void decide(const Apply& node);
  std::vector<Tensor> run_op(const Apply& node, const std::vector<Tensor>& inputs) const;
  std::vector<Tensor> finish();

  // -- staged_loop.cpp
  std::vector<Tensor> run_loop(const Apply& node, const std::vector<Tensor>& inputs);
  std::vector<Tensor> run_closed(const Apply& node, const std::vector<Tensor>& inputs, index_t n);
  std::vector<Tensor> run_steps(const Apply& node, const std::vector<Tensor>& inputs, index_t n);

  std::vector<Tensor> call(const Function& f, std::vector<Tensor> arguments);
  index_t held_bytes() const;

  const StagedProgram& program_;
  std::unordered_map<const VariableNode*, Tensor> values_;
  std::unordered_map<const VariableNode*, Variable> stands_for_;  // outputs of decided branches
  std::vector<Apply> order_;                                      // needed for the outputs
  std::unordered_map<const VariableNode*, std::optional<Extents>> extents_;
  Nodes undecided_;  // their extents, or those inside, depend on elements
  std::unordered_map<const ApplyNode*, std::exception_ptr> misfits_;  // with inputs that do not fit
  index_t peak_bytes_ = 0;
};

}  // namespace palimpsest
