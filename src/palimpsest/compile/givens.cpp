// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "palimpsest/compile/resolve.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"

namespace palimpsest {
namespace {

// The application on inputs that may have other types. An elementwise op holds the dtypes of its
// operands.
Apply applied_anew(const Apply& node, std::span<const Variable> inputs) {
  if (std::ranges::equal(inputs, node.inputs())) return node;
  if (std::ranges::equal(inputs, node.inputs(), {}, &Variable::type, &Variable::type)) {
    return applied_again(node, inputs);
  }
  const auto* const elementwise = dynamic_cast<const ops::Elementwise*>(&node.op());
  const bool converts =
      elementwise && elementwise->scalar_op() && *elementwise->scalar_op() != ScalarOp::identity;
  if (!converts) return node.op().make_node(inputs);
  return ops::elementwise(*elementwise->scalar_op(), inputs).owner();
}

}  // namespace

Substitution::Substitution(const Givens& givens, std::vector<Variable> inputs, bool is_strict)
    : inputs_(std::move(inputs)), is_strict_(is_strict) {
  const std::unordered_set<Variable> explicit_inputs(inputs_.begin(), inputs_.end());
  std::unordered_map<Variable, std::size_t> places;  // in old_
  for (const auto& [old, with] : givens) {
    if (!old.defined()) throw ValueError("[function] givens: undefined variable");
    if (explicit_inputs.contains(old)) {
      throw ValueError("[function] givens: " + old.str() + " is an explicit input");
    }
    if (!places.try_emplace(old, old_.size()).second) {
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
  // The inputs and the other replaced variables that each replacement needs. One of x may need x
  // itself.
  std::vector<std::vector<Variable>> from(old_.size());
  std::vector<std::vector<std::size_t>> needs(old_.size());
  for (std::size_t i = 0; i < old_.size(); ++i) {
    for (const Variable& v : values_of({&given_[i], 1})) {
      const auto place = places.find(v);
      if (place != places.end() && place->second != i) needs[i].push_back(place->second);
      if (explicit_inputs.contains(v)) from[i].push_back(v);
    }
  }
  for (std::size_t i : order_of_dependence(needs)) {
    std::vector<Variable> to = from[i];
    for (std::size_t j : needs[i]) {
      from[i].push_back(old_[j]);
      to.push_back(new_[j]);
    }
    const bool is_needed = std::find(from[i].begin(), from[i].end(), given_[i]) != from[i].end();
    if (is_needed || old_.size() > 1) {
      new_[i] = map_graph({&given_[i], 1}, from[i], to, twin())[0];
    }
  }
}

// Each after those that it is computed from; otherwise as given.
std::vector<std::size_t> Substitution::order_of_dependence(
    const std::vector<std::vector<std::size_t>>& needs) const {
  std::vector<std::vector<std::size_t>> needed_by(needs.size());
  std::vector<std::size_t> n_waiting(needs.size());
  std::set<std::size_t> ready, next;  // of this pass through the list, and of the next one
  for (std::size_t i = 0; i < needs.size(); ++i) {
    n_waiting[i] = needs[i].size();
    if (needs[i].empty()) ready.insert(i);
    for (std::size_t j : needs[i]) needed_by[j].push_back(i);
  }
  std::vector<std::size_t> order;
  for (; !ready.empty(); ready.swap(next)) {
    while (!ready.empty()) {
      const std::size_t i = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(i);
      for (std::size_t k : needed_by[i]) {
        if (--n_waiting[k] == 0) (k > i ? ready : next).insert(k);
      }
    }
  }
  if (order.size() == needs.size()) return order;
  std::string text;
  for (std::size_t i = 0; i < old_.size(); ++i) {
    if (n_waiting[i] > 0) text += (text.empty() ? "" : ", ") + old_[i].str();
  }
  throw ValueError("[function] givens form a cycle: each of " + text + " needs another one");
}

TwinMaker Substitution::twin() const { return is_strict_ ? applied_again : applied_anew; }

std::vector<Variable> Substitution::operator()(std::span<const Variable> outputs) const {
  if (old_.empty()) return {outputs.begin(), outputs.end()};
  std::vector<Variable> from = inputs_, to = inputs_;
  from.insert(from.end(), old_.begin(), old_.end());
  to.insert(to.end(), new_.begin(), new_.end());
  return map_graph(outputs, from, to, twin());
}

}  // namespace palimpsest
