// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/fusion.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "palimpsest/ops/elementwise_op.hpp"
#include "palimpsest/rewrite/patterns.hpp"

namespace palimpsest {
namespace {

// Beyond this, registers of one tile no longer stay in the first-level cache.
constexpr int kMostRegisters = 32;

const ops::Elementwise* elementwise(const Apply& node) {
  const auto* const op = op_of<ops::Elementwise>(node);
  return op && op->overwrites() == ops::Elementwise::kNone ? op : nullptr;
}

// Dimensions broadcast only where they are known to be 1, so equal-or-unknown extents are equal.
bool is_broadcast(const TensorType& from, const TensorType& to) {
  for (std::size_t i = 0; i < from.rank(); ++i) {
    if (from.shape[i] == 1 && to.shape[i] != 1) return true;
  }
  return false;
}

bool is_sum(const Apply& node) {
  const ElementwiseProgram& program = elementwise(node)->program();
  const int result = program.outputs()[0];
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [&](const ElementwiseProgram::Instruction& i) {
                       return i.destination == result && i.op == ScalarOp::add;
                     });
}

// Is this an array that a step makes, not a view of an input of the graph?
bool is_computed(Variable v) {
  while (v.owner().defined()) {
    const Apply node = v.owner();
    const AliasMap views = node.op().view_map(node);
    const auto shown = views.find(v.index());
    if (shown == views.end() || shown->second.size() != 1) return true;
    v = node.input(static_cast<std::size_t>(*shown->second.begin()));
  }
  return false;
}

// Arrays that are added up one after the other are in memory two at a time; in one pass, all of
// them would be. So a sum of computed arrays takes no part in a longer one.
bool would_gather_terms(const Apply& reader, const Apply& producer) {
  if (!is_sum(reader) || !is_sum(producer)) return false;
  int computed = 0;
  for (const Variable& v : producer.inputs()) computed += is_computed(v) ? 1 : 0;
  return computed > 1;
}

class Fusion {
 public:
  explicit Fusion(FunctionGraph& graph) : graph_(graph) {}

  int run() {
    int fused = 0;
    for (const Apply& node : graph_.toposort()) {
      if (elementwise(node) && node.output_count() == 1) fused += fuse_into(node);
    }
    return fused;
  }

 private:
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

  // The register of an input of the new program; equal variables share one.
  int input_register(const Variable& v) {
    const auto it = std::find(inputs_.begin(), inputs_.end(), v);
    if (it != inputs_.end()) return registers_[static_cast<std::size_t>(it - inputs_.begin())];
    inputs_.push_back(v);
    registers_.push_back(program_.input(v.dtype()));
    return registers_.back();
  }

  std::vector<int> input_registers(const Apply& node) {
    std::vector<int> registers;
    for (const Variable& v : node.inputs()) registers.push_back(input_register(v));
    return registers;
  }

  int fuse_into(const Apply& node) {
    int total = elementwise(node)->program().n_registers();
    std::vector<Variable> taken;
    for (const Variable& v : node.inputs()) {
      if (std::find(taken.begin(), taken.end(), v) != taken.end() || !can_take_in(node, v)) {
        continue;
      }
      const int registers = elementwise(v.owner())->program().n_registers();
      if (total + registers > kMostRegisters) continue;
      total += registers;
      taken.push_back(v);
    }
    if (taken.empty()) return 0;

    program_ = {};
    inputs_.clear();
    registers_.clear();
    std::vector<int> operands;
    for (const Variable& v : node.inputs()) {
      if (std::find(taken.begin(), taken.end(), v) == taken.end()) {
        operands.push_back(input_register(v));
        continue;
      }
      const Apply producer = v.owner();
      const std::vector<int> arguments = input_registers(producer);
      operands.push_back(program_.append(elementwise(producer)->program(), arguments)[0]);
    }
    program_.output(program_.append(elementwise(node)->program(), operands)[0]);
    const auto op = std::make_shared<const ops::Elementwise>(program_);
    const Variable result = op->make_node(inputs_).output(0);
    const Variable old = node.output(0);
    if (!(result.type() == old.type())) return 0;
    result.node()->name = old.name();
    result.tags() = old.tags();
    graph_.replace(old, result, "fuse_elementwise");
    return static_cast<int>(taken.size());
  }

  FunctionGraph& graph_;
  ElementwiseProgram program_;
  std::vector<Variable> inputs_;
  std::vector<int> registers_;
};

// Results of the graph that read the same array are computed in one pass over it.
class OutputFusion {
 public:
  OutputFusion(FunctionGraph& graph, const RewriteHints& hints) : graph_(graph), hints_(hints) {}

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

  // Joins the node with the first one before it that is a candidate and reads what it reads, or
  // computes it; else the node waits for later ones.
  bool join_earlier(const Apply& node) {
    const Variable out = node.output(0);
    for (const Variable& v : node.inputs()) {
      if (is_broadcast(v.type(), out.type())) continue;
      const auto found = waiting_.find(v.node());
      if (found == waiting_.end() || !graph_.contains(found->second)) continue;
      const Apply with = joined(found->second, node);
      if (!with.defined()) continue;
      wait(with);
      return true;
    }
    wait(node);
    return false;
  }

  void wait(const Apply& node) {
    for (const Variable& v : node.inputs()) {
      if (!is_broadcast(v.type(), node.output(0).type())) waiting_[v.node()] = node;
    }
    for (const Variable& v : node.outputs()) waiting_[v.node()] = node;
    kept_.push_back(node);
  }

  // Inputs that one of the two could overwrite: of these a step of several results overwrites one,
  // where two steps could overwrite two.
  std::size_t count_overwritable(const Apply& a, const Apply& b) const {
    std::vector<Variable> found;
    for (const Apply& node : {a, b}) {
      for (const Variable& v : node.inputs()) {
        if (v.owner() == a || v.is_constant() || is_broadcast(v.type(), node.output(0).type()) ||
            std::find(found.begin(), found.end(), v) != found.end()) {
          continue;
        }
        const bool may_be = graph_.is_input(v) ? !graph_.is_protected(v) : !graph_.is_output(v);
        const std::vector<Use> uses =
            graph_.use_count(v) <= kMostUses ? graph_.uses(v) : std::vector<Use>{Use{}};
        const bool is_last = std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
          return use.node == a || use.node == b;
        });
        if (may_be && is_last) found.push_back(v);
      }
    }
    // A shared variable is overwritten by its new value after all who read the old one.
    for (const auto& [value, memory] : hints_.preferred_memory) {
      const bool is_result = value.owner() == a || value.owner() == b;
      const bool is_new = std::find(found.begin(), found.end(), memory) == found.end();
      if (is_result && is_new) found.push_back(memory);
    }
    return found.size();
  }

  Apply joined(const Apply& a, const Apply& b) {
    const auto &first = elementwise(a)->program(), &second = elementwise(b)->program();
    if (!(a.output(0).type().shape == b.output(0).type().shape) ||
        first.n_registers() + second.n_registers() > kMostRegisters ||
        a.output_count() + b.output_count() > kMostOutputs || count_overwritable(a, b) > 1) {
      return {};
    }
    ElementwiseProgram program;
    std::vector<Variable> inputs;
    std::vector<int> registers;
    const auto read = [&](const Variable& v) {
      const auto it = std::find(inputs.begin(), inputs.end(), v);
      if (it != inputs.end()) return registers[static_cast<std::size_t>(it - inputs.begin())];
      inputs.push_back(v);
      registers.push_back(program.input(v.dtype()));
      return registers.back();
    };
    std::vector<int> operands;
    for (const Variable& v : a.inputs()) operands.push_back(read(v));
    std::vector<int> results = program.append(first, operands);
    operands.clear();
    for (const Variable& v : b.inputs()) {
      const bool is_result = v.owner() == a;
      operands.push_back(is_result ? results[static_cast<std::size_t>(v.index())] : read(v));
    }
    for (const int r : program.append(second, operands)) results.push_back(r);
    for (const int r : results) program.output(r);
    return replaced(a, b, std::make_shared<const ops::Elementwise>(program)->make_node(inputs));
  }

  // A value that goes from one through a third node to the other closes a cycle.
  Apply replaced(const Apply& a, const Apply& b, const Apply& with) {
    std::vector<std::pair<Variable, Variable>> pairs;
    for (const Apply& node : {a, b}) {
      for (const Variable& old : node.outputs()) {
        const Variable v = with.output(pairs.size());
        if (!(v.type() == old.type())) return {};
        v.node()->name = old.name();
        v.tags() = old.tags();
        pairs.emplace_back(old, v);
      }
    }
    try {
      graph_.replace_all_validate(pairs, "fuse_elementwise");
    } catch (const CycleError&) {
      return {};
    } catch (const InconsistencyError&) {
      return {};
    }
    return with;
  }

  static constexpr std::size_t kMostOutputs = ElementwiseProgram::kMaxOutputs;
  static constexpr std::size_t kMostUses = 64;

  FunctionGraph& graph_;
  const RewriteHints& hints_;
  std::unordered_map<const VariableNode*, Apply> waiting_;
  std::vector<Apply> kept_;  // so that no address in waiting_ is used twice
};

}  // namespace

int fuse_elementwise(FunctionGraph& graph, const RewriteHints& hints) {
  const int fused = Fusion(graph).run();
  return fused + OutputFusion(graph, hints).run();
}

}  // namespace palimpsest
