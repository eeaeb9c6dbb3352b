// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/fusion.hpp"

#include <algorithm>
#include <memory>

#include "palimpsest/ops/elementwise_op.hpp"

namespace palimpsest {
namespace {

// Beyond this, registers of one tile no longer stay in the first-level cache.
constexpr int kMostRegisters = 32;

const ops::Elementwise* elementwise(const Apply& node) {
  if (!node.defined()) return nullptr;
  const auto* op = dynamic_cast<const ops::Elementwise*>(&node.op());
  return op && op->overwrites() == ops::Elementwise::kNone ? op : nullptr;
}

// Dimensions broadcast only where they are known to be 1, so equal-or-unknown extents are equal.
bool is_broadcast(const TensorType& from, const TensorType& to) {
  for (std::size_t i = 0; i < from.rank(); ++i) {
    if (from.shape[i] == 1 && to.shape[i] != 1) return true;
  }
  return false;
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
    const std::vector<Use>& uses = graph_.uses(v);
    return std::all_of(uses.begin(), uses.end(), [&](const Use& u) { return u.node == reader; });
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

}  // namespace

int fuse_elementwise(FunctionGraph& graph, const RewriteHints&) { return Fusion(graph).run(); }

}  // namespace palimpsest
