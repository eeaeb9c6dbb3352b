// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/marks.hpp"

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/graph/origin.hpp"

namespace palimpsest {

void copy_marks(const Variable& from, const Variable& to) {
  to.node()->name = from.name();
  to.node()->tags = from.tags();
}

void copy_marks(const Apply& from, const Apply& to) {
  to.node()->built_at = from.node()->built_at;
  copy_origin(from, to);
  for (std::size_t k = 0; k < from.output_count(); ++k) copy_marks(from.output(k), to.output(k));
}

void pass_marks(const Variable& old, const Variable& with) {
  if (with.name().empty() && !old.name().empty()) with.named(old.name());
  VariableTags& tags = with.tags();
  tags.indestructible = tags.indestructible || old.tags().indestructible;
  tags.nan_guard = tags.nan_guard && old.tags().nan_guard;
}

std::vector<Variable> values_of(std::span<const Variable> outputs,
                                std::span<const Variable> inputs) {
  std::vector<Variable> found;
  PointerSet<const VariableNode> seen;
  const auto visit = [&](const Variable& v) {
    if (seen.insert(v.node())) found.push_back(v);
  };
  for (const Apply& node : applications_of(outputs, inputs)) {
    for (const Variable& v : node.inputs()) visit(v);
  }
  for (const Variable& v : outputs) visit(v);
  return found;
}

Apply applied_again(const Apply& node, std::span<const Variable> inputs) {
  std::vector<TensorType> types;
  for (const Variable& v : node.outputs()) types.push_back(v.type());
  return Apply::make(node.op_ptr(), inputs, std::move(types));
}

std::vector<Variable> map_graph(std::span<const Variable> outputs, std::span<const Variable> inputs,
                                std::span<const Variable> replacements, const TwinMaker& twin) {
  if (inputs.size() != replacements.size()) {
    throw InternalError("[clone_graph] as many replacements as inputs expected");
  }
  PointerMap<const VariableNode, Variable> copies;
  for (std::size_t i = 0; i < inputs.size(); ++i) copies[inputs[i].node()] = replacements[i];
  const auto copies_of = [&](std::span<const Variable> values) {
    std::vector<Variable> result(values.begin(), values.end());
    for (Variable& v : result) {
      if (const Variable* const copy = copies.find(v.node())) v = *copy;
    }
    return result;
  };
  for (const Apply& node : applications_of(outputs, inputs)) {
    const Apply copy = twin(node, copies_of(node.inputs()));
    copy_marks(node, copy);
    for (std::size_t i = 0; i < node.output_count(); ++i) {
      copies.try_emplace(node.output(i).node(), copy.output(i));
    }
  }
  return copies_of(outputs);
}

}  // namespace palimpsest
