// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/fusion.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "palimpsest/base/pointer_map.hpp"
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

// Steps with equal programs share one op, and with it the state prepared for its runs.
class SharedOps {
 public:
  std::shared_ptr<const ops::Elementwise> op_of(ElementwiseProgram program) {
    auto& alike = ops_[hash_of(program)];
    for (const auto& op : alike) {
      if (op->program() == program) return op;
    }
    return alike.emplace_back(std::make_shared<const ops::Elementwise>(std::move(program)));
  }

 private:
  static std::uint64_t hash_of(const ElementwiseProgram& program) {
    std::uint64_t hash = program.inputs().size();
    const auto add = [&](auto word) {
      hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    };
    for (const ElementwiseProgram::Instruction& i : program.instructions()) {
      add(i.op);
      add(i.destination);
      for (const std::int16_t source : i.sources) add(source);
    }
    return hash;
  }

  std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<const ops::Elementwise>>> ops_;
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

// Results of the graph that read the same array are computed in one pass over it.
class OutputFusion {
 public:
  OutputFusion(FunctionGraph& graph, const RewriteHints& hints, SharedOps& ops)
      : graph_(graph), ops_(ops) {
    for (const auto& [value, memory] : hints.preferred_memory) {
      if (!value.owner().defined()) continue;
      preferred_memory_.try_emplace(value.owner().node()).first->push_back(memory);
    }
  }

  int run() {
    int fused = 0;
    for (const Apply& node : graph_.toposort()) {
      if (!graph_.contains(node) || !is_candidate(node)) continue;
      fused += join_earlier(node) ? 1 : 0;
    }
    return fused;
  }

 private:
  bool is_candidate(const Apply& node) const {
    if (!elementwise(node)) return false;
    const std::vector<Variable> outputs = node.outputs();
    return std::all_of(outputs.begin(), outputs.end(), [&](const Variable& v) {
      return graph_.is_output(v) && !v.is_indestructible();
    });
  }

  // Joins the node with earlier candidates that compute its inputs or read the same, as long as one
  // fits. The result waits for later nodes.
  bool join_earlier(Apply node) {
    bool has_joined = false;
    for (Apply with = joined_with_one(node); with.defined(); with = joined_with_one(node)) {
      node = with;
      has_joined = true;
    }
    wait(node);
    return has_joined;
  }

  Apply joined_with_one(const Apply& node) {
    const Variable out = node.output(0);
    for (const Variable& v : node.inputs()) {
      if (is_broadcast(v.type(), out.type())) continue;
      const Apply* const found = waiting_.find(v.node());
      if (!found || !graph_.contains(*found)) continue;
      const Apply with = joined(*found, node);
      if (with.defined()) return with;
    }
    return {};
  }

  void wait(const Apply& node) {
    for (const Variable& v : node.inputs()) {
      if (!is_broadcast(v.type(), node.output(0).type())) waiting_[v.node()] = node;
    }
    for (const Variable& v : node.outputs()) waiting_[v.node()] = node;
    kept_.push_back(node);
  }

  // Values that a node could overwrite if it runs in one step with `other`.
  std::vector<Variable> overwritable(const Apply& node, const Apply& other) const {
    std::vector<Variable> found;
    for (const Variable& v : node.inputs()) {
      if (v.owner() == other || v.is_constant() || is_broadcast(v.type(), node.output(0).type()) ||
          std::find(found.begin(), found.end(), v) != found.end()) {
        continue;
      }
      const bool may_be = graph_.is_input(v) ? !graph_.is_protected(v) : !graph_.is_output(v);
      const std::vector<Use> uses =
          graph_.use_count(v) <= kMostUses ? graph_.uses(v) : std::vector<Use>{Use{}};
      const bool is_last = std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
        return use.node == node || use.node == other;
      });
      if (may_be && is_last) found.push_back(v);
    }
    // A shared variable is overwritten by its new value after all readers of the old one.
    if (const std::vector<Variable>* const memories = preferred_memory_.find(node.node())) {
      for (const Variable& memory : *memories) {
        if (std::find(found.begin(), found.end(), memory) == found.end()) found.push_back(memory);
      }
    }
    return found;
  }

  // True if one step can overwrite as many values as two steps could.
  bool overwrites_as_much(const Apply& a, const Apply& b, const Apply& with) const {
    std::vector<Variable> found = overwritable(a, b);
    const std::vector<Variable> of_b = overwritable(b, a);
    std::size_t most =
        std::min(found.size(), a.output_count()) + std::min(of_b.size(), b.output_count());
    for (const Variable& v : of_b) {
      if (std::find(found.begin(), found.end(), v) == found.end()) found.push_back(v);
    }
    most = std::min(most, found.size());
    if (most < 2) return true;
    std::set<int> allowed;
    for (std::size_t i = 0; i < with.input_count(); ++i) {
      if (std::find(found.begin(), found.end(), with.input(i)) != found.end()) {
        allowed.insert(static_cast<int>(i));
      }
    }
    const OpPtr op = with.op().inplace_on_inputs(with, allowed);
    return op && overwritten_inputs(op->make_node(with.inputs())).size() >= most;
  }

  Apply joined(const Apply& a, const Apply& b) {
    const auto &first = elementwise(a)->program(), &second = elementwise(b)->program();
    if (!(a.output(0).type().shape == b.output(0).type().shape) ||
        first.n_registers() + second.n_registers() > kMostRegisters ||
        a.output_count() + b.output_count() > kMostOutputs) {
      return {};
    }
    FusedStep step;
    std::vector<int> operands = step.read_all(a.inputs());
    std::vector<int> results = step.program.append(first, operands);
    operands.clear();
    for (const Variable& v : b.inputs()) {
      const bool is_result = v.owner() == a;
      operands.push_back(is_result ? results[static_cast<std::size_t>(v.index())] : step.read(v));
    }
    for (const int r : step.program.append(second, operands)) results.push_back(r);
    for (const int r : results) step.program.output(r);
    const auto op = ops_.op_of(std::move(step.program));
    const Apply with = op->make_node(step.inputs);
    return overwrites_as_much(a, b, with) ? replaced(a, b, with) : Apply();
  }

  // A value that goes from one through a third node to the other closes a cycle.
  Apply replaced(const Apply& a, const Apply& b, const Apply& with) {
    std::vector<std::pair<Variable, Variable>> pairs;
    for (const Apply& node : {a, b}) {
      for (const Variable& old : node.outputs()) {
        const Variable v = with.output(pairs.size());
        if (!(v.type() == old.type())) return {};
        pairs.emplace_back(old, v);
      }
    }
    return replace_if_consistent(graph_, pairs, "fuse_elementwise") ? with : Apply();
  }

  static constexpr std::size_t kMostOutputs = ElementwiseProgram::kMaxOutputs;
  static constexpr std::size_t kMostUses = 64;

  FunctionGraph& graph_;
  SharedOps& ops_;
  PointerMap<const ApplyNode, std::vector<Variable>> preferred_memory_;  // of a step's results
  PointerMap<const VariableNode, Apply> waiting_;
  std::vector<Apply> kept_;  // so that no address in waiting_ is used twice
};

}  // namespace

int fuse_elementwise(FunctionGraph& graph, const RewriteHints& hints) {
  SharedOps ops;
  const int fused = Fusion(graph, ops).run();
  return fused + OutputFusion(graph, hints, ops).run();
}

}  // namespace palimpsest
