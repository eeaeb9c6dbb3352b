// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/fusion.hpp"

#include <optional>
#include <span>

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/rewrite/passes/fusion/join_steps.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

// Beyond this, registers of one tile no longer stay in the first-level cache.
constexpr int kMostRegisters = 32;

const ops::Elementwise* elementwise(const Apply& node) {
  const auto* const op = op_of<ops::Elementwise>(node);
  return op && !op->is_in_place() ? op : nullptr;
}

// Dimensions broadcast only where they are known to be 1, so equal-or-unknown extents are equal.
bool is_broadcast(const TensorType& from, const TensorType& to) {
  for (std::size_t i = 0; i < from.rank(); ++i) {
    if (from.shape[i] == 1 && to.shape[i] != 1) return true;
  }
  return false;
}

bool is_sum_program(const ElementwiseProgram& program) {
  const int result = program.outputs()[0];
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [&](const ElementwiseProgram::Instruction& i) {
                       return i.destination == result && i.op == ScalarOp::add;
                     });
}

// The type of a program's result: along every axis 1 if all inputs have 1, else the known extent.
TensorType type_of_result(const ElementwiseProgram& program, std::span<const Variable> inputs) {
  TensorType type = inputs[0].type();
  type.dtype = program.dtype_of_register(program.outputs()[0]);
  for (const Variable& v : inputs) {
    for (std::size_t k = 0; k < type.rank(); ++k) {
      const index_t extent = v.type().shape[k];
      if (type.shape[k] == 1 || (type.shape[k] == kUnknown && extent != 1)) type.shape[k] = extent;
    }
  }
  return type;
}

// A program, its inputs and their registers; equal variables share one.
class FusedStep {
 public:
  int read(const Variable& v) {
    const auto it = std::find(inputs.begin(), inputs.end(), v);
    if (it != inputs.end()) return registers_[static_cast<std::size_t>(it - inputs.begin())];
    inputs.push_back(v);
    registers_.push_back(program.input(v.dtype()));
    return registers_.back();
  }
  std::vector<int> read_all(std::span<const Variable> list) {
    std::vector<int> registers;
    for (const Variable& v : list) registers.push_back(read(v));
    return registers;
  }

  ElementwiseProgram program;
  std::vector<Variable> inputs;

 private:
  std::vector<int> registers_;
};

// First it is found out which step takes in which, reader by reader in topological order; then each
// step that nothing takes in is put into the graph, so that a chain is one replacement. One that
// the graph refuses is made of pairs, of which those are left out that close a circle.
class Fusion {
 public:
  Fusion(FunctionGraph& graph, SharedOps& ops) : graph_(graph), ops_(ops) {}

  int run() {
    const std::vector<Apply> order = graph_.toposort();
    for (const Apply& node : order) {
      if (elementwise(node) && node.output_count() == 1) fuse_into(node);
    }
    int fused = 0;
    for (const Apply& node : order) {
      const Step* const step = steps_.find(node.node());
      if (!step || step->is_taken_in) continue;
      const std::vector<Apply> members = step->members;
      fused +=
          put(node, *step).defined() ? static_cast<int>(members.size()) - 1 : put_in_pairs(members);
    }
    return fused;
  }

 private:
  struct Step : FusedStep {
    bool is_taken_in = false;         // and then empty
    Apply origin = {};                // a node of it; one with a limit on lanes, if there is any
    std::vector<Apply> members = {};  // its nodes, inputs before users
  };

  static bool has_limit(const Apply& node) {
    const Origin* const origin = origin_of(node);
    return origin && origin->limit;
  }
  Apply origin_node(const Apply& node) const {
    const Step* const step = steps_.find(node.node());
    return step ? step->origin : node;
  }

  const ElementwiseProgram& program_of(const Apply& node) const {
    const Step* const step = steps_.find(node.node());
    return step ? step->program : elementwise(node)->program();
  }
  std::span<const Variable> inputs_of(const Apply& node) const {
    const Step* const step = steps_.find(node.node());
    return step ? std::span<const Variable>(step->inputs) : node.inputs();
  }

  // Arrays that are added up one after the other are in memory two at a time; in one pass, all of
  // them would be. So a sum of computed arrays takes no part in a longer one.
  bool would_gather_terms(const Apply& reader, const Apply& producer) const {
    if (!is_sum_program(program_of(reader)) || !is_sum_program(program_of(producer))) return false;
    int computed = 0;
    for (const Variable& v : inputs_of(producer)) computed += is_computed(v) ? 1 : 0;
    return computed > 1;
  }

  bool can_take_in(const Apply& reader, const Variable& v) const {
    const Apply producer = v.owner();
    if (!producer.defined() || !graph_.contains(producer)) return false;
    if (!elementwise(producer) || producer.output_count() != 1 || v.is_indestructible()) {
      return false;
    }
    if (is_broadcast(v.type(), reader.output(0).type())) return false;
    if (would_gather_terms(reader, producer)) return false;
    return only_reader_is(graph_, v, reader);
  }

  void fuse_into(const Apply& node) {
    int total = elementwise(node)->program().n_registers();
    std::vector<Variable> taken;
    for (const Variable& v : node.inputs()) {
      if (std::find(taken.begin(), taken.end(), v) != taken.end() || !can_take_in(node, v)) {
        continue;
      }
      const int registers = program_of(v.owner()).n_registers();
      if (total + registers > kMostRegisters) continue;
      total += registers;
      taken.push_back(v);
    }
    if (taken.empty()) return;
    std::optional<Step> made = with_taken_in(node, taken);
    if (!made) return;
    for (const Variable& v : taken) {
      if (Step* const step = steps_.find(v.owner().node())) *step = {{}, true};
    }
    steps_.try_emplace(node.node(), std::move(*made));
  }

  std::optional<Step> with_taken_in(const Apply& node, std::span<const Variable> taken) const {
    Step made;
    std::vector<int> operands;
    for (const Variable& v : node.inputs()) {
      if (std::find(taken.begin(), taken.end(), v) == taken.end()) {
        operands.push_back(made.read(v));
        continue;
      }
      const std::vector<int> arguments = made.read_all(inputs_of(v.owner()));
      operands.push_back(made.program.append(program_of(v.owner()), arguments)[0]);
    }
    made.program.output(made.program.append(elementwise(node)->program(), operands)[0]);
    if (made.inputs.empty()) return {};
    if (!(type_of_result(made.program, made.inputs) == node.output(0).type())) return {};
    made.origin = node;
    for (const Variable& v : taken) {
      const Apply from = origin_node(v.owner());
      if (!has_limit(made.origin) && has_limit(from)) made.origin = from;
      const Step* const step = steps_.find(v.owner().node());
      if (!step) made.members.push_back(v.owner());
      if (step) made.members.insert(made.members.end(), step->members.begin(), step->members.end());
    }
    made.members.push_back(node);
    return made;
  }

  // The step in the place of the node; undefined if the graph refuses it.
  Apply put(const Apply& node, const Step& step) {
    std::vector<Variable> inputs = step.inputs;
    for (Variable& v : inputs) {
      if (const Variable* const with = replaced_.find(v.node())) v = *with;
    }
    const auto op = ops_.op_of(step.program);
    const Variable old = node.output(0), result = op->make_node(inputs).output(0);
    // A limit on parallel runs of a part of the step holds for the whole step.
    pass_origin(step.origin, result.owner());
    const std::pair<Variable, Variable> pair{old, result};
    if (!replace_if_consistent(graph_, {&pair, 1}, "fuse_elementwise")) return {};
    replaced_.try_emplace(old.node(), result);
    return result.owner();
  }

  int put_in_pairs(const std::vector<Apply>& members) {
    for (const Apply& node : members) steps_.erase(node.node());
    std::vector<Apply> made;
    int fused = 0;
    const auto take_in_one = [&](const Apply& reader) -> Apply {
      const std::vector<Variable> inputs(reader.inputs().begin(), reader.inputs().end());
      for (const Variable& v : inputs) {
        const bool is_member = std::find(made.begin(), made.end(), v.owner()) != made.end();
        if (!is_member || !can_take_in(reader, v)) continue;
        const std::optional<Step> step = with_taken_in(reader, {&v, 1});
        const Apply with = step ? put(reader, *step) : Apply();
        if (with.defined()) return with;
      }
      return {};
    };
    for (Apply reader : members) {
      for (Apply with = take_in_one(reader); with.defined(); with = take_in_one(reader)) {
        reader = with;
        ++fused;
      }
      made.push_back(reader);
    }
    if (made.back() != members.back()) {
      replaced_[members.back().output(0).node()] = made.back().output(0);
    }
    return fused;
  }

  FunctionGraph& graph_;
  SharedOps& ops_;
  PointerMap<const ApplyNode, Step> steps_;            // of those that take in others
  PointerMap<const VariableNode, Variable> replaced_;  // by variables of the present graph
};

}  // namespace

int fuse_elementwise(FunctionGraph& graph, const RewriteHints& hints) {
  SharedOps ops;
  const int fused = Fusion(graph, ops).run();
  return fused + join_results(graph, hints, ops);
}

}  // namespace palimpsest
