// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/resolve.hpp"

#include <algorithm>
#include <unordered_set>

#include "palimpsest/graph/origin.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest {
namespace {

void check_variable(const In& in, std::size_t position, std::span<const In> before) {
  const Variable& v = in.variable;
  if (!v.defined()) {
    throw ValueError("[function] input " + std::to_string(position) + " is undefined");
  }
  if (v.is_constant()) {
    throw TypeError("[function] input " + v.str() + " is a constant. Try givens");
  }
  if (v.is_root() && container_of(v)) {
    throw TypeError("[function] input " + v.str() +
                    " is a shared variable. Try givens, or In(variable, {.value = container})");
  }
  const auto is_same = [&](const In& other) { return other.variable == v; };
  if (std::any_of(before.begin(), before.end(), is_same)) {
    throw UnusedInputError("[function] " + v.str() + " is used twice in inputs");
  }
}

ResolvedInput resolve(const In& in, std::optional<bool> allow_downcast) {
  const InOptions& given = in.options;
  ResolvedInput result;
  result.variable = in.variable;
  if (given.name) {
    result.name = *given.name;
  } else if (given.autoname) {
    result.name = in.variable.name();
  }
  const std::string who = "input " + in.variable.str();
  result.filter = {given.strict, given.allow_downcast ? given.allow_downcast : allow_downcast};
  const bool is_updated = given.update.defined();
  result.is_mutable = given.is_mutable.value_or(is_updated || given.borrow.value_or(false));
  result.borrow = given.borrow.value_or(result.is_mutable);
  if (result.is_mutable && !result.borrow) {
    throw ValueError("[" + who +
                     "] is_mutable = true and borrow = false contradict each other: "
                     "an input that may be overwritten is lent. Try borrow = true");
  }
  const TensorType& type = in.variable.type();
  if (given.value.container()) {
    result.container = given.value.container();
    if (!type.is_super(result.container->type())) {
      throw TypeError("[" + who + "] value: got a container of " + result.container->type().str() +
                      ", expected " + type.str());
    }
  } else if (given.value.value().defined()) {
    result.container = std::make_shared<Container>(
        type, given.value.value(),
        ContainerOptions{result.name, false, given.strict, result.filter.allow_downcast});
  }
  result.is_implicit = given.implicit.value_or(given.value.container() != nullptr);
  if (result.is_implicit && !result.container) {
    throw TypeError("[" + who + "] implicit = true needs a value. Try .value = container");
  }
  if (is_updated) {
    if (!result.container) {
      throw TypeError("[" + who + "] an update needs a value to persist. Try .value = tensor");
    }
    const TensorType& target = result.container->type();
    result.update = expression_of(given.update, target, "update of " + in.variable.str());
    check_update_type(target, result.update.type(), "update of " + in.variable.str());
  }
  return result;
}

}  // namespace

std::vector<ResolvedInput> resolve_inputs(const std::vector<In>& inputs,
                                          std::optional<bool> allow_downcast) {
  std::vector<ResolvedInput> result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_variable(inputs[i], i, {inputs.data(), i});
    result.push_back(resolve(inputs[i], allow_downcast));
  }
  return result;
}

Variable expression_of(const Value& value, const TensorType& type, std::string_view who) {
  if (value.is_variable()) return value.variable();
  return constant(filter(type, value, {}, who));
}

Variable with_extents_of(const TensorType& type, const Variable& value, const std::string& name) {
  const TensorType& given = value.type();
  if (given.rank() != type.rank()) return value;
  for (std::size_t k = 0; k < type.rank(); ++k) {
    const index_t m = given.shape[k], n = type.shape[k];
    if (m != n && m != kUnknown && n != kUnknown) return value;
  }
  const OriginScope origin("the value of " + (name.empty() ? type.str() : "'" + name + "'") +
                           ". Try shared(value, {.shape = std::nullopt}) for a variable whose "
                           "extents may change");
  return ops::specify_shape(value, type.shape);
}

std::vector<Variable> roots_of(std::span<const Variable> outputs,
                               std::span<const Variable> inputs) {
  const std::unordered_set<Variable> cut(inputs.begin(), inputs.end());
  std::vector<Variable> found = values_of(outputs, inputs);
  std::erase_if(found, [&](const Variable& v) { return !v.is_root() && !cut.contains(v); });
  return found;
}

std::string path_from(const Variable& root, std::span<const Variable> outputs,
                      std::span<const Variable> inputs) {
  constexpr int kLongest = 12;
  const std::vector<Apply> nodes = applications_of(outputs, inputs);
  std::string text = root.str();
  Variable v = root;
  std::size_t next = 0;
  for (int length = 0; length < kLongest; ++length) {
    const auto output = std::find(outputs.begin(), outputs.end(), v);
    if (output != outputs.end()) {
      return text + " -> output " + std::to_string(output - outputs.begin());
    }
    // In this order, users come after the nodes that they use.
    for (; next < nodes.size(); ++next) {
      const auto used = nodes[next].inputs();
      if (std::find(used.begin(), used.end(), v) != used.end()) break;
    }
    if (next == nodes.size()) return text;
    text += " -> " + nodes[next].op().name();
    const std::vector<Variable> results = nodes[next].outputs();
    v = results[0];
    for (const Variable& result : results) {
      if (std::find(outputs.begin(), outputs.end(), result) != outputs.end()) v = result;
    }
  }
  return text + " -> ...";
}

}  // namespace palimpsest
