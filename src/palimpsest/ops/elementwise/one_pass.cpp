// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/elementwise/one_pass.hpp"

#include <memory>
#include <utility>

#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

// Most registers of a program with sums in its step.
constexpr int kMostRegisters = 40;

// A program that computes variables, down to where it reads arrays.
class Collector {
 public:
  Collector(const Extents& shape, std::span<const Variable> leaves)
      : shape_(shape), leaves_(leaves) {}

  /// The register of v.
  int add(const Variable& v) {
    const auto known = std::find_if(registers_.begin(), registers_.end(),
                                    [&](const auto& entry) { return entry.first == v; });
    if (known != registers_.end()) return known->second;
    const int made = is_computed_here(v) ? computed(v) : read(v);
    registers_.emplace_back(v, made);
    return made;
  }

  ElementwiseProgram program;
  std::vector<Variable> inputs;

 private:
  static const Elementwise* op_of(const Variable& v) {
    return v.owner().defined() ? dynamic_cast<const Elementwise*>(&v.owner().op()) : nullptr;
  }

  bool is_computed_here(const Variable& v) const {
    const Elementwise* const op = op_of(v);
    return op != nullptr && !op->is_in_place() && v.type().shape == shape_ && n_ < kMostRegisters &&
           std::find(leaves_.begin(), leaves_.end(), v) == leaves_.end();
  }

  int computed(const Variable& v) {
    ++n_;
    std::vector<int> operands;
    for (const Variable& input : v.owner().inputs()) operands.push_back(add(input));
    return program.append(op_of(v)->program(), operands)[static_cast<std::size_t>(v.index())];
  }

  // Numbers that are spread alike are one input.
  int read(const Variable& v) {
    const auto same = std::find_if(inputs.begin(), inputs.end(),
                                   [&](const Variable& other) { return is_same(v, other); });
    if (same != inputs.end())
      return program.inputs()[static_cast<std::size_t>(same - inputs.begin())];
    inputs.push_back(v);
    return program.input(v.dtype());
  }

  static bool is_same(const Variable& a, const Variable& b) {
    const Apply x = a.owner(), y = b.owner();
    if (!x.defined() || !y.defined() || a.index() != b.index()) return false;
    return x.op() == y.op() && x.inputs().size() == 1 && y.inputs().size() == 1 &&
           x.inputs()[0] == y.inputs()[0];
  }

  const Extents& shape_;
  std::span<const Variable> leaves_;
  int n_ = 0;  // ops so far
  std::vector<std::pair<Variable, int>> registers_;
};

}  // namespace

namespace {

Pass apart(const std::vector<Variable>& arrays, const std::vector<Variable>& normed) {
  Pass pass{arrays, {}};
  for (const Variable& v : normed) pass.norms.push_back(norm2(v));
  return pass;
}

// The node that makes all outputs of the program, and the sums of squares of those behind the
// arrays.
Apply made_by(Collector all, std::size_t n_arrays, const std::vector<int>& normed) {
  std::vector<int> outputs(all.program.outputs().begin(), all.program.outputs().end());
  std::vector<SumOfOutputs> sums;
  for (const int r : normed) {
    auto at = std::find(outputs.begin(), outputs.end(), r);
    if (at == outputs.end()) {
      all.program.output(r);
      at = outputs.insert(outputs.end(), r);
    }
    sums.push_back({SumOfOutputs::Kind::norm2, static_cast<int>(at - outputs.begin()), 0});
  }
  if (sums.empty()) {
    return std::make_shared<const Elementwise>(std::move(all.program))->make_node(all.inputs);
  }
  return std::make_shared<const ElementwiseSums>(std::move(all.program), n_arrays, std::move(sums))
      ->make_node(all.inputs);
}

}  // namespace

Pass one_pass(const std::vector<Variable>& arrays, const std::vector<Variable>& normed,
              std::span<const Variable> leaves) {
  const TensorType& type = arrays.front().type();
  Collector all(type.shape, leaves);
  std::vector<int> made, summed;
  // Sums first: they read their inputs before an array is written in place of one.
  for (const Variable& v : normed) summed.push_back(all.add(v));
  for (const Variable& v : arrays) made.push_back(all.add(v));
  const auto has_other_shape = [&](const Variable& v) { return !(v.type().shape == type.shape); };
  const auto is_read = [&](const Variable& v) {
    return std::find(all.inputs.begin(), all.inputs.end(), v) != all.inputs.end();
  };
  constexpr auto kMostOutputs = static_cast<std::size_t>(ElementwiseProgram::kMaxOutputs);
  if (all.program.n_registers() > kMostRegisters || arrays.size() + normed.size() > kMostOutputs ||
      !type.is_fully_known() || std::any_of(arrays.begin(), arrays.end(), has_other_shape) ||
      std::any_of(normed.begin(), normed.end(), has_other_shape) ||
      std::any_of(arrays.begin(), arrays.end(), is_read)) {
    return apart(arrays, normed);
  }
  for (const int r : made) all.program.output(r);
  const Apply node = made_by(std::move(all), arrays.size(), summed);
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    if (!(node.output(k).type() == arrays[k].type())) return apart(arrays, normed);
  }
  Pass pass;
  for (std::size_t k = 0; k < node.output_count(); ++k) {
    (k < arrays.size() ? pass.arrays : pass.norms).push_back(node.output(k));
  }
  return pass;
}

}  // namespace palimpsest::ops
