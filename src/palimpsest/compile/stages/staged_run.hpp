// SPDX-License-Identifier: Apache-2.0
// Internal: one run of a StagedProgram.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "palimpsest/compile/stages/pending_work.hpp"
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
    Givens choices = {};             // what its nodes read for values that were chosen
  };

  // -- values
  bool is_known(const Variable& v) const;
  const Tensor& value_of(const Variable& raw) const;
  void hold(const Variable& v, Tensor value);
  void drop(const Variable& v);

  // -- doing it
  Piece piece_for(const std::vector<Variable>& wanted) const;
  StagedProgram::Key key_of(const Piece& piece) const;
  Function compiled(const Piece& piece) const;
  void compute(const std::vector<Variable>& wanted);
  void advance(const std::vector<Apply>& decisions);
  void decide(const Apply& node);
  std::vector<Tensor> run_op(const Apply& node, const std::vector<Tensor>& inputs) const;
  std::vector<Apply> nodes_for(std::span<const Variable> wanted) const;
  std::vector<Tensor> finish();

  // -- staged_loop.cpp
  std::vector<Tensor> run_loop(const Apply& node, const std::vector<Tensor>& inputs);
  std::vector<Tensor> run_closed(const Apply& node, const std::vector<Tensor>& inputs, index_t n);
  std::vector<Tensor> run_steps(const Apply& node, const std::vector<Tensor>& inputs, index_t n);

  std::vector<Tensor> call(const Function& f, std::vector<Tensor> arguments);
  const StagedProgram& program_;
  PendingWork pending_;
  std::unordered_map<const VariableNode*, Tensor> values_;  // those that are still read
  struct Block {
    index_t bytes = 0;
    int n_values = 0;
  };
  std::unordered_map<const void*, Block> blocks_;  // memory of values_, but for the inputs
  index_t held_bytes_ = 0;                         // of blocks_
  index_t peak_bytes_ = 0;
};

}  // namespace palimpsest
