// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/function_graph.hpp"

#include <algorithm>

namespace palimpsest {
namespace {

const std::vector<Use> kNoUses;

// `<op> of <variable>` chains from a root to an output, for error texts.
std::string path_to_output(const FunctionGraph& graph, Variable v) {
  std::string text = v.str();
  for (int length = 0; length < 8; ++length) {
    const std::vector<Use>& uses = graph.uses(v);
    if (uses.empty()) break;
    if (!uses.front().node.defined())
      return text + " -> output " + std::to_string(uses.front().index);
    text += " -> " + uses.front().node.op().name();
    v = uses.front().node.output(0);
  }
  return text + " -> ...";
}

}  // namespace

std::string_view name_of(InconsistencyKind kind) {
  switch (kind) {
    case InconsistencyKind::none:
      return "none";
    case InconsistencyKind::destroys_constant:
      return "destroys_constant";
    case InconsistencyKind::destroys_indestructible:
      return "destroys_indestructible";
    case InconsistencyKind::destroys_protected:
      return "destroys_protected";
    case InconsistencyKind::destroys_output:
      return "destroys_output";
    case InconsistencyKind::input_aliasing:
      return "input_aliasing";
    case InconsistencyKind::multiple_destroyers:
      return "multiple_destroyers";
    case InconsistencyKind::ordering_cycle:
      return "ordering_cycle";
    case InconsistencyKind::transaction:
      return "transaction";
  }
  return "unknown";
}

FunctionGraph::FunctionGraph(std::vector<Variable> inputs, std::vector<Variable> outputs,
                             Options options)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  if (options.clone) {
    std::vector<Variable> copies;
    for (const Variable& v : inputs_) {
      auto node = std::make_shared<VariableNode>();
      node->type = v.type();
      node->name = v.name();
      node->tags = v.tags();
      node->attachment = v.handle()->attachment;
      copies.emplace_back(std::move(node));
    }
    outputs_ = clone_graph(outputs_, inputs_, copies);
    inputs_ = std::move(copies);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    import_variable(outputs_[i]);
    uses_[outputs_[i].node()].push_back({Apply(), static_cast<int>(i)});
  }
}

const std::vector<Use>& FunctionGraph::uses(const Variable& v) const {
  const auto it = uses_.find(v.node());
  return it == uses_.end() ? kNoUses : it->second;
}

bool FunctionGraph::is_output(const Variable& v) const {
  return std::find(outputs_.begin(), outputs_.end(), v) != outputs_.end();
}

// Adds the applications that v needs and the graph has not yet. Checks the roots first, so that a
// missing input changes nothing.
void FunctionGraph::import_variable(const Variable& v) {
  std::vector<Apply> fresh;
  const std::vector<Variable> target{v};
  const auto check_root = [&](const Variable& root) {
    if (!root.is_root() || root.is_constant()) return;
    if (std::find(inputs_.begin(), inputs_.end(), root) != inputs_.end()) return;
    throw MissingInputError(
        "[FunctionGraph] " + root.str() + " is needed but is neither an input nor a constant: " +
        path_to_output(*this, root) + ". Try to add it to the inputs or to givens");
  };
  check_root(v);
  for (const Apply& node : applications_of(target, inputs_)) {
    if (contains(node)) continue;
    for (const Variable& input : node.inputs()) check_root(input);
    fresh.push_back(node);
  }
  for (const Apply& node : fresh) {
    nodes_.emplace(node.node(), std::pair(node, next_position_++));
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      uses_[node.input(i).node()].push_back({node, static_cast<int>(i)});
    }
  }
}

FunctionGraph::Snapshot FunctionGraph::snapshot() const {
  return {outputs_, nodes_, uses_, next_position_, {}};
}

void FunctionGraph::restore(Snapshot&& before) {
  for (auto it = before.replaced_inputs.rbegin(); it != before.replaced_inputs.rend(); ++it) {
    it->first.node.node()->inputs[static_cast<std::size_t>(it->first.index)] = it->second;
  }
  outputs_ = std::move(before.outputs);
  nodes_ = std::move(before.nodes);
  uses_ = std::move(before.uses);
  next_position_ = before.next_position;
}

void FunctionGraph::redirect(const Variable& old, const Variable& with, Snapshot& before) {
  const auto it = uses_.find(old.node());
  if (it == uses_.end()) return;
  const std::vector<Use> moved = it->second;  // the uses before `with` brings its own
  import_variable(with);
  for (const Use& use : moved) {
    const auto index = static_cast<std::size_t>(use.index);
    if (use.node.defined()) {
      before.replaced_inputs.emplace_back(use, old);
      use.node.node()->inputs[index] = with;
    } else {
      outputs_[index] = with;
    }
    uses_[with.node()].push_back(use);
    std::erase(uses_.at(old.node()), use);
  }
  prune(old);
}

// Removes the application of a variable nobody uses any more, and what only it used.
void FunctionGraph::prune(const Variable& v) {
  std::vector<Variable> candidates{v};
  while (!candidates.empty()) {
    const Variable candidate = candidates.back();
    candidates.pop_back();
    const auto it = uses_.find(candidate.node());
    if (it != uses_.end() && it->second.empty()) uses_.erase(it);
    const Apply owner = candidate.owner();
    if (!owner.defined() || !contains(owner)) continue;
    const std::vector<Variable> outputs = owner.outputs();
    const bool needed = std::any_of(outputs.begin(), outputs.end(),
                                    [&](const Variable& o) { return !uses(o).empty(); });
    if (needed) continue;
    nodes_.erase(owner.node());
    for (std::size_t i = 0; i < owner.input_count(); ++i) {
      std::erase(uses_.at(owner.input(i).node()), Use{owner, static_cast<int>(i)});
      candidates.push_back(owner.input(i));
    }
  }
}

void FunctionGraph::edit(std::span<const std::pair<Variable, Variable>> pairs, bool validated) {
  for (const auto& [old, with] : pairs) {
    if (!old.type().is_super(with.type())) {
      throw TypeError("[replace] " + old.str() + " is " + old.type().str() + ", but " + with.str() +
                      " is " + with.type().str());
    }
  }
  Snapshot before = snapshot();
  try {
    for (const auto& [old, with] : pairs) redirect(old, with, before);
    std::vector<Apply> cycle;
    sorted({}, &cycle);
    if (!cycle.empty()) {
      std::string text = "[replace] " + pairs.front().first.str() + " by " +
                         pairs.front().second.str() + " would close a data cycle:";
      for (const Apply& node : cycle) text += " " + node.op().name();
      throw CycleError(text);
    }
    if (validated) validate();
  } catch (...) {
    restore(std::move(before));
    throw;
  }
}

void FunctionGraph::replace(const Variable& old, const Variable& with, std::string_view) {
  const std::pair<Variable, Variable> pair{old, with};
  edit({&pair, 1}, false);
}
void FunctionGraph::replace_all(std::span<const std::pair<Variable, Variable>> pairs,
                                std::string_view) {
  edit(pairs, false);
}
void FunctionGraph::replace_validate(const Variable& old, const Variable& with, std::string_view) {
  const std::pair<Variable, Variable> pair{old, with};
  edit({&pair, 1}, true);
}
void FunctionGraph::replace_all_validate(std::span<const std::pair<Variable, Variable>> pairs,
                                         std::string_view) {
  edit(pairs, true);
}

std::vector<Apply> FunctionGraph::nodes_in_order() const {
  std::vector<std::pair<std::size_t, Apply>> list;
  for (const auto& [key, entry] : nodes_) list.emplace_back(entry.second, entry.first);
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Apply> nodes;
  for (auto& [position, node] : list) nodes.push_back(std::move(node));
  return nodes;
}

// Depth first from the outputs, inputs in order, then what must precede: values are computed just
// before they are used, which keeps few of them alive.
std::vector<std::pair<Apply, Apply>> FunctionGraph::order_constraints() const {
  std::vector<Constraint> constraints;
  collect(constraints);
  std::vector<std::pair<Apply, Apply>> result;
  for (const Constraint& c : constraints) {
    result.emplace_back(nodes_.at(c.before).first, nodes_.at(c.after).first);
  }
  return result;
}

std::vector<Apply> FunctionGraph::sorted(std::span<const Constraint> constraints,
                                         std::vector<Apply>* cycle) const {
  std::unordered_map<const ApplyNode*, std::vector<const ApplyNode*>> earlier;
  for (const Constraint& c : constraints) earlier[c.after].push_back(c.before);
  struct Visit {
    Apply node;
    std::size_t next = 0;
  };
  std::vector<Apply> order;
  std::vector<Visit> stack;
  std::unordered_map<const ApplyNode*, bool> finished;  // absent: not seen
  const auto push = [&](const Apply& node) {
    const auto it = finished.find(node.node());
    if (it == finished.end()) {
      finished[node.node()] = false;
      stack.push_back({node});
      return true;
    }
    if (it->second) return true;
    if (cycle) {
      auto first =
          std::find_if(stack.begin(), stack.end(), [&](const Visit& v) { return v.node == node; });
      for (; first != stack.end(); ++first) cycle->push_back(first->node);
    }
    return false;
  };
  for (const Variable& output : outputs_) {
    const Apply owner = output.owner();
    if (!owner.defined() || !contains(owner)) continue;
    if (!push(owner)) return order;
    while (!stack.empty()) {
      Visit& top = stack.back();
      const Apply node = top.node;
      const auto extra = earlier.find(node.node());
      const std::size_t n_extra = extra == earlier.end() ? 0 : extra->second.size();
      if (top.next < node.input_count()) {
        const Apply before = node.input(top.next++).owner();
        if (before.defined() && contains(before) && !push(before)) return order;
      } else if (top.next < node.input_count() + n_extra) {
        const ApplyNode* before = extra->second[top.next++ - node.input_count()];
        if (!push(nodes_.at(before).first)) return order;
      } else {
        finished[node.node()] = true;
        order.push_back(node);
        stack.pop_back();
      }
    }
  }
  return order;
}

std::vector<Apply> FunctionGraph::toposort() const {
  std::vector<Constraint> constraints;
  if (const Inconsistency fault = collect(constraints)) throw InconsistencyError(fault.text);
  return sorted(constraints, nullptr);
}

std::string FunctionGraph::str() const {
  std::string text = "FunctionGraph(";
  const auto append = [&](const auto& self, const Variable& v, int depth) -> void {
    const Apply owner = v.owner();
    if (!owner.defined() || !contains(owner) || depth > 16) {
      text += v.str();
      return;
    }
    text += owner.op().name() + "(";
    for (std::size_t i = 0; i < owner.input_count(); ++i) {
      if (i > 0) text += ", ";
      self(self, owner.input(i), depth + 1);
    }
    text += ")";
    if (owner.output_count() > 1) text += "." + std::to_string(v.index());
  };
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (i > 0) text += ", ";
    append(append, outputs_[i], 0);
  }
  return text + ")";
}

}  // namespace palimpsest
