// SPDX-License-Identifier: Apache-2.0
// Internal: one run of a StagedProgram.
#pragma once

#include <exception>
#include <span>
#include <unordered_map>
#include <vector>

#include "palimpsest/compile/stages/staged.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/plan/notes.hpp"

namespace palimpsest {

/// Does as f(). An error gets a note about the application and the shapes of its inputs.
template <class F>
auto with_note(const Apply& node, std::span<const Extents> inputs, F f) try {
  return f();
} catch (Error& error) {
  error.add_note(describe_node(node, inputs));
  throw;
}

/// Runs the stages one after the other; those of branches that are not taken are left out.
class StagedRun {
 public:
  StagedRun(const StagedProgram& program, std::span<const Tensor* const> inputs);
  StagedProgram::Result run();

 private:
  // -- values
  const Tensor& value_of(const Variable& v) const;
  /// On the device of its type: constants of accelerators are on the host.
  Tensor placed(const Variable& v) const;
  void hold(const Variable& v, Tensor value);
  void drop(const Variable& v);
  std::vector<Tensor> outputs() const;

  // -- stages
  bool is_taken(int branch) const;
  void try_to_run(const ProgramStage& stage);
  void run(const ProgramStage& stage);
  void choose(const Apply& node, const ops::IfElse& choice);
  std::vector<Tensor> call(const Function& f, std::vector<Tensor> arguments);

  // -- staged_loop.cpp
  std::vector<Tensor> run_loop(const Apply& node, const std::vector<Tensor>& inputs,
                               std::span<const Extents> extents);
  std::vector<Tensor> run_closed(const Apply& node, const std::vector<Tensor>& inputs, index_t n);
  std::vector<Tensor> run_steps(const Apply& node, index_t n);

  const StagedProgram& program_;
  const std::span<const Tensor* const> inputs_;
  std::unordered_map<const VariableNode*, Tensor> values_;              // those that are still read
  std::unordered_map<const VariableNode*, std::exception_ptr> errors_;  // in place of values
  struct Block {
    index_t bytes = 0;  // 0: of an input or a constant
    int n_values = 0;
  };
  std::unordered_map<const void*, Block> blocks_;  // memory of values_
  index_t held_bytes_ = 0;                         // of blocks_
  index_t peak_bytes_ = 0;
};

}  // namespace palimpsest
