// SPDX-License-Identifier: Apache-2.0
// The straightforward check of a graph's in-place steps: everything is derived anew from the alias
// maps of the nodes.
//
// Rules, for every node n, every input d that it overwrites, and every variable m whose memory
// meets that of d and that does not itself exist only once n has run:
//  R1  m is no constant, indestructible, protected or output.
//  R2  every reader of m other than n precedes n.
//  R3  m is no other input of n, unless n tolerates it.
//  R4  data edges and the constraints of R2 have no cycle.
//  R5  what overwrites an input to be overwritten last cannot fail, and comes after every node that
//      can.
#include <algorithm>
#include <optional>

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {
namespace {

// Output k of a node may lie in the memory of these inputs.
std::set<int> alias_inputs(const Apply& node, int output) {
  std::set<int> result;
  for (const AliasMap& map : {node.op().view_map(node), node.op().destroy_map(node)}) {
    const auto it = map.find(output);
    if (it != map.end()) result.insert(it->second.begin(), it->second.end());
  }
  return result;
}

std::optional<InconsistencyKind> forbidden(const FunctionGraph& graph, const Variable& m) {
  if (m.is_constant()) return InconsistencyKind::destroys_constant;
  if (m.is_indestructible()) return InconsistencyKind::destroys_indestructible;
  if (graph.is_protected(m)) return InconsistencyKind::destroys_protected;
  if (graph.is_output(m)) return InconsistencyKind::destroys_output;
  return {};
}

std::string names_of(std::span<const Apply> nodes) {
  std::string text;
  for (const Apply& node : nodes) text += (text.empty() ? "" : " ") + node.op().name();
  return text;
}

std::string describe(InconsistencyKind kind, const Apply& node, const Variable& destroyed,
                     const Variable& other) {
  std::string text = "[validate] " + std::string(name_of(kind)) + ": " + node.op().name() +
                     " destroys " + destroyed.str();
  if (kind == InconsistencyKind::input_aliasing) {
    text += ", but also reads " + other.str() + ", which shares its memory";
  } else if (kind == InconsistencyKind::transaction) {
    text += " and can fail halfway";
  } else if (!(destroyed == other)) {
    text += ", whose memory " + other.str() + " shares";
  }
  return text;
}

}  // namespace

std::unordered_set<const VariableNode*> FunctionGraph::alias_closure(
    std::vector<Variable> from, bool upward, std::vector<Variable>* members) const {
  std::unordered_set<const VariableNode*> seen;
  const auto visit = [&](const Variable& v, std::vector<Variable>& list) {
    if (!seen.insert(v.node()).second) return;
    list.push_back(v);
    if (members) members->push_back(v);
  };
  std::vector<Variable> list;
  for (const Variable& v : from) visit(v, list);
  while (!list.empty()) {
    const Variable v = list.back();
    list.pop_back();
    if (upward) {
      const Apply owner = v.owner();
      if (!owner.defined() || !contains(owner)) continue;
      for (int i : alias_inputs(owner, v.index())) {
        visit(owner.input(static_cast<std::size_t>(i)), list);
      }
      continue;
    }
    for (const Use& use : uses(v)) {
      if (!use.node.defined()) continue;
      for (std::size_t k = 0; k < use.node.output_count(); ++k) {
        if (alias_inputs(use.node, static_cast<int>(k)).contains(use.index)) {
          visit(use.node.output(k), list);
        }
      }
    }
  }
  return seen;
}

Inconsistency FunctionGraph::collect(std::vector<Constraint>& constraints) const {
  Inconsistency first;
  const auto report = [&](InconsistencyKind kind, const Apply& node, const Variable& d,
                          const Variable& m) {
    if (first && first.kind <= kind) return;
    first = {kind, node, m, describe(kind, node, d, m)};
  };
  std::unordered_set<const ApplyNode*> destroyers;
  std::vector<Constraint> transactions;
  const std::vector<Apply> nodes = nodes_in_order();
  for (const Apply& node : nodes) {
    const std::set<int> overwritten = overwritten_inputs(node);
    if (overwritten.empty()) continue;
    destroyers.insert(node.node());
    const auto after = alias_closure(node.outputs(), false, nullptr);
    const IndexPairs same = node.op().tolerate_same(node);
    const IndexPairs aliased = node.op().tolerate_aliased(node);
    for (int d : overwritten) {
      const Variable& destroyed = node.input(static_cast<std::size_t>(d));
      std::vector<Variable> above, members;
      alias_closure({destroyed}, true, &above);
      alias_closure(above, false, &members);
      const bool is_last = std::any_of(above.begin(), above.end(), [&](const Variable& v) {
        return overwritten_last_.contains(v.node());
      });
      if (is_last && node.op().can_fail()) {
        report(InconsistencyKind::transaction, node, destroyed, destroyed);
      }
      for (std::size_t i = 0; is_last && i < nodes.size(); ++i) {
        const bool counts = nodes[i].op().can_fail() && !(nodes[i] == node);
        if (counts) transactions.push_back({nodes[i].node(), node.node()});
      }
      for (const Variable& m : members) {
        if (after.contains(m.node())) continue;
        if (const auto kind = forbidden(*this, m)) report(*kind, node, destroyed, m);
        for (const Use& use : uses(m)) {
          if (!use.node.defined()) continue;
          if (!(use.node == node)) {
            constraints.push_back({use.node.node(), node.node()});
          } else if (use.index != d && !aliased.contains({d, use.index}) &&
                     !(m == destroyed && same.contains({d, use.index}))) {
            report(InconsistencyKind::input_aliasing, node, destroyed, m);
          }
        }
      }
    }
  }
  if (first) return first;
  for (const Constraint& c : constraints) {
    const Constraint opposite{c.after, c.before};
    if (!destroyers.contains(c.before) || c.before == c.after) continue;
    if (std::find(constraints.begin(), constraints.end(), opposite) != constraints.end()) {
      const Apply& node = nodes_.at(c.after).first;
      return {InconsistencyKind::multiple_destroyers, node, node.input(0),
              "[validate] multiple_destroyers: " + node.op().name() + " and " +
                  nodes_.at(c.before).first.op().name() + " overwrite what the other reads"};
    }
  }
  const std::size_t n_without_transactions = constraints.size();
  constraints.insert(constraints.end(), transactions.begin(), transactions.end());
  return find_cycle(constraints, n_without_transactions);
}

Inconsistency FunctionGraph::find_cycle(std::span<const Constraint> constraints,
                                        std::size_t n_without_transactions) const {
  std::vector<Apply> cycle;
  sorted(constraints, &cycle);
  if (cycle.empty()) return {};
  std::vector<Apply> other;
  sorted(constraints.first(n_without_transactions), &other);
  if (other.empty()) {
    return {InconsistencyKind::transaction, cycle.front(), cycle.front().output(0),
            "[validate] transaction: a step that can fail would come after one that overwrites "
            "what a failed run must leave: " +
                names_of(cycle)};
  }
  return {InconsistencyKind::ordering_cycle, other.front(), other.front().output(0),
          "[validate] ordering_cycle: " + names_of(other) +
              ": each must precede the next one's result or overwrites what it reads"};
}

Inconsistency FunctionGraph::check() const {
  std::vector<Constraint> constraints;
  return collect(constraints);
}

void FunctionGraph::validate() const {
  if (const Inconsistency fault = check()) throw InconsistencyError(fault.text);
}

std::vector<Apply> FunctionGraph::destroyers(const Variable& v) const {
  std::vector<Variable> above, members;
  alias_closure({v}, true, &above);
  alias_closure(above, false, &members);
  std::vector<Apply> result;
  for (const Apply& node : nodes_in_order()) {
    for (int d : overwritten_inputs(node)) {
      const Variable& destroyed = node.input(static_cast<std::size_t>(d));
      if (std::find(members.begin(), members.end(), destroyed) != members.end()) {
        result.push_back(node);
        break;
      }
    }
  }
  return result;
}

}  // namespace palimpsest
