// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "palimpsest/compile/resolve.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"

namespace palimpsest {
namespace {

bool is_among(std::span<const Variable> list, const Variable& v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

// True if `expression` needs `v`.
bool depends_on(const Variable& expression, const Variable& v) {
  if (expression == v) return true;
  for (const Apply& node : applications_of({&expression, 1})) {
    if (is_among(node.inputs(), v)) return true;
  }
  return false;
}

// The op on inputs of other types. An elementwise op holds the dtypes of its operands.
Apply applied_anew(const Op& op, std::span<const Variable> inputs) {
  const auto* const elementwise = dynamic_cast<const ops::Elementwise*>(&op);
  const bool converts =
      elementwise && elementwise->scalar_op() && *elementwise->scalar_op() != ScalarOp::identity;
  if (!converts) return op.make_node(inputs);
  return ops::elementwise(*elementwise->scalar_op(), inputs).owner();
}

}  // namespace

Substitution::Substitution(const Givens& givens, std::vector<Variable> inputs, bool is_strict)
    : inputs_(std::move(inputs)), is_strict_(is_strict) {
  for (const auto& [old, with] : givens) {
    if (!old.defined()) throw ValueError("[function] givens: undefined variable");
    if (is_among(inputs_, old)) {
      throw ValueError("[function] givens: " + old.str() + " is an explicit input");
    }
    if (is_among(old_, old)) {
      throw ValueError("[function] givens: " + old.str() + " is replaced twice");
    }
    if (!with.defined()) {
      throw ValueError("[function] givens: " + old.str() + " is replaced by nothing");
    }
    const bool as_it_is = !with.is_variable() && !is_strict_;
    Variable replacement =
        as_it_is ? constant(with.tensor())
                 : expression_of(with, old.type(), "function givens for " + old.str());
    if (is_strict_ && container_of(old)) {
      replacement = with_extents_of(old.type(), replacement, old.name());
    }
    if (is_strict_ && !old.type().is_super(replacement.type())) {
      throw TypeError("[function] givens: " + old.str() + ": got " + replacement.type().str() +
                      ", expected " + old.type().str() + ". Try rebuild_strict = false");
    }
    old_.push_back(old);
    given_.push_back(replacement);
  }
  new_ = given_;
  for (std::size_t i : order_of_dependence()) {
    std::vector<Variable> from = inputs_, to = inputs_;
    for (std::size_t j = 0; j < old_.size(); ++j) {
      if (j == i) continue;  // a replacement of x may need x itself
      from.push_back(old_[j]);
      to.push_back(new_[j]);
    }
    if (is_among(from, given_[i]) || old_.size() > 1) {
      new_[i] = is_strict_ ? clone_graph({&given_[i], 1}, from, to)[0]
                           : rebuild_graph({&given_[i], 1}, from, to)[0];
    }
  }
}

// Each after those that it is computed from.
std::vector<std::size_t> Substitution::order_of_dependence() const {
  std::vector<std::size_t> order;
  std::vector<bool> done(old_.size(), false);
  while (order.size() < old_.size()) {
    const std::size_t before = order.size();
    for (std::size_t i = 0; i < old_.size(); ++i) {
      bool ready = !done[i];
      for (std::size_t j = 0; ready && j < old_.size(); ++j) {
        ready = j == i || done[j] || !depends_on(given_[i], old_[j]);
      }
      if (!ready) continue;
      done[i] = true;
      order.push_back(i);
    }
    if (order.size() > before) continue;
    std::string text;
    for (std::size_t i = 0; i < old_.size(); ++i) {
      if (!done[i]) text += (text.empty() ? "" : ", ") + old_[i].str();
    }
    throw ValueError("[function] givens form a cycle: each of " + text + " needs another one");
  }
  return order;
}

std::vector<Variable> Substitution::operator()(std::span<const Variable> outputs) const {
  if (old_.empty()) return {outputs.begin(), outputs.end()};
  std::vector<Variable> from = inputs_, to = inputs_;
  from.insert(from.end(), old_.begin(), old_.end());
  to.insert(to.end(), new_.begin(), new_.end());
  return is_strict_ ? clone_graph(outputs, from, to) : rebuild_graph(outputs, from, to);
}

std::vector<Variable> rebuild_graph(std::span<const Variable> outputs,
                                    std::span<const Variable> inputs,
                                    std::span<const Variable> replacements) {
  std::unordered_map<const VariableNode*, Variable> copies;
  for (std::size_t i = 0; i < inputs.size(); ++i) copies[inputs[i].node()] = replacements[i];
  const auto copy_of = [&](const Variable& v) {
    const auto it = copies.find(v.node());
    return it == copies.end() ? v : it->second;
  };
  for (const Apply& node : applications_of(outputs, inputs)) {
    std::vector<Variable> arguments;
    bool same_types = true, same = true;
    for (const Variable& v : node.inputs()) {
      arguments.push_back(copy_of(v));
      same = same && arguments.back() == v;
      same_types = same_types && arguments.back().type() == v.type();
    }
    if (same) continue;
    std::vector<TensorType> types;
    for (const Variable& v : node.outputs()) types.push_back(v.type());
    const Apply copy = same_types ? Apply::make(node.op_ptr(), arguments, std::move(types))
                                  : applied_anew(node.op(), arguments);
    for (std::size_t i = 0; i < node.output_count(); ++i) {
      const Variable from = node.output(i), to = copy.output(i);
      to.node()->name = from.name();
      to.set_indestructible(from.is_indestructible());
      copies.try_emplace(from.node(), to);
    }
  }
  std::vector<Variable> result;
  for (const Variable& v : outputs) result.push_back(copy_of(v));
  return result;
}

}  // namespace palimpsest
