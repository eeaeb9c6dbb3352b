// SPDX-License-Identifier: Apache-2.0
#include "graph/reference.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

namespace palimpsest::reference {
namespace {

using Edge = std::pair<const ApplyNode*, const ApplyNode*>;

class Analyser {
 public:
  explicit Analyser(const FunctionGraph& graph) : graph_(graph) {
    result_.nodes = applications_of(graph.outputs(), graph.inputs());
    for (const Apply& node : result_.nodes) add_node(node);
    for (const Variable& v : graph.outputs()) vars_[id_of(v)].is_output = true;
  }

  Analysis run() {
    for (std::size_t a = 0; a < vars_.size(); ++a) descend(a);
    for (const Apply& node : result_.nodes) examine(node);
    const std::set<Edge> transactions = transaction_edges();
    if (result_.kind == InconsistencyKind::none) order(transactions);
    for (const Edge& e : transactions) {
      if (e.first != e.second) result_.constraints.insert(e);
    }
    return std::move(result_);
  }

 private:
  struct AliasOf {
    std::size_t child;
    Region map;
  };
  struct Var {
    Variable v;
    TensorType type;
    bool is_output = false;
    std::vector<AliasOf> children;
    std::vector<std::pair<Apply, int>> uses;
    // All variables that it reaches by alias edges, with the region of each path.
    std::map<std::size_t, std::vector<Region>> below;
  };

  std::size_t id_of(const Variable& v) {
    const auto [it, is_new] = ids_.emplace(v.node(), vars_.size());
    if (is_new) vars_.push_back({v, v.type(), false, {}, {}, {}});
    return it->second;
  }

  void add_node(const Apply& node) {
    const Op& op = node.op();
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      vars_[id_of(node.input(i))].uses.emplace_back(node, static_cast<int>(i));
      const Apply owner = node.input(i).owner();
      if (owner.defined()) result_.data.emplace(owner.node(), node.node());
    }
    for (const AliasMap& map : {op.view_map(node), op.destroy_map(node)}) {
      for (const auto& [out, inputs] : map) {
        for (int in : inputs) {
          const std::size_t child = id_of(node.output(static_cast<std::size_t>(out)));
          const std::size_t parent = id_of(node.input(static_cast<std::size_t>(in)));
          vars_[parent].children.push_back({child, op.view_region(node, out, in)});
        }
      }
    }
    for (const std::set<int>& group : op.output_aliases(node)) {
      const std::size_t hidden = vars_.size();
      vars_.push_back({});
      for (int out : group) {
        const std::size_t child = id_of(node.output(static_cast<std::size_t>(out)));
        vars_[hidden].children.push_back({child, Region::unknown()});
      }
    }
  }

  void descend(std::size_t a) {
    std::vector<std::pair<std::size_t, Region>> open{{a, Region::whole()}};
    while (!open.empty()) {
      const auto [v, map] = open.back();
      open.pop_back();
      std::vector<Region>& maps = vars_[a].below[v];
      if (std::find(maps.begin(), maps.end(), map) != maps.end()) continue;
      maps.push_back(map);
      for (const AliasOf& e : vars_[v].children) {
        open.emplace_back(e.child, e.map.within(map, vars_[a].type));
      }
    }
  }

  bool overlap(std::size_t d, const Region& written, std::size_t m) const {
    return std::any_of(vars_.begin(), vars_.end(), [&](const Var& a) {
      const auto of_d = a.below.find(d), of_m = a.below.find(m);
      if (of_d == a.below.end() || of_m == a.below.end()) return false;
      for (const Region& x : of_d->second) {
        for (const Region& y : of_m->second) {
          if (written.within(x, a.type).meets(y, a.type)) return true;
        }
      }
      return false;
    });
  }

  void report(InconsistencyKind kind, const std::string& text = {}) {
    if (result_.kind != InconsistencyKind::none && kind >= result_.kind) return;
    result_.kind = kind;
    result_.text = text;
  }

  void report_forbidden(const Apply& node, int input, const Var& m) {
    if (!m.v.defined()) return;
    const Apply owner = m.v.owner();
    const std::string text = node.op().name() + " overwrites input " + std::to_string(input) +
                             " and so " + (owner.defined() ? owner.op().name() : m.v.str());
    if (m.v.is_constant()) report(InconsistencyKind::destroys_constant, text);
    if (m.v.is_indestructible()) report(InconsistencyKind::destroys_indestructible, text);
    if (graph_.is_protected(m.v)) report(InconsistencyKind::destroys_protected, text);
    if (m.is_output) report(InconsistencyKind::destroys_output, text);
  }

  void examine(const Apply& node) {
    const Op& op = node.op();
    std::set<std::size_t> after;
    for (const Variable& out : node.outputs()) {
      for (const auto& [v, maps] : vars_[id_of(out)].below) after.insert(v);
    }
    const IndexPairs same = op.tolerate_same(node), aliased = op.tolerate_aliased(node);
    for (int input : overwritten_inputs(node)) {
      const std::size_t d = id_of(node.input(static_cast<std::size_t>(input)));
      const Region written = op.write_region(node, input);
      for (std::size_t m = 0; m < vars_.size(); ++m) {
        if (after.contains(m) || !overlap(d, written, m)) continue;
        report_forbidden(node, input, vars_[m]);
        for (const auto& [user, j] : vars_[m].uses) {
          if (!(user == node)) {
            if (user.op().reads(user, j)) result_.constraints.emplace(user.node(), node.node());
          } else if (j != input && !aliased.contains({input, j}) &&
                     !(m == d && same.contains({input, j}))) {
            report(InconsistencyKind::input_aliasing);
          }
        }
      }
    }
  }

  // Does the node overwrite memory that must be overwritten last?
  bool is_last(const Apply& node) {
    for (int input : overwritten_inputs(node)) {
      const std::size_t d = id_of(node.input(static_cast<std::size_t>(input)));
      for (const Var& v : vars_) {
        if (v.v.defined() && graph_.is_overwritten_last(v.v) && v.below.contains(d)) return true;
      }
    }
    return false;
  }

  std::set<Edge> transaction_edges() {
    std::set<Edge> edges;
    for (const Apply& node : result_.nodes) {
      if (!is_last(node)) continue;
      for (const Apply& other : result_.nodes) {
        if (other.op().can_fail()) edges.emplace(other.node(), node.node());
      }
    }
    return edges;
  }

  void order(const std::set<Edge>& transactions) {
    for (const auto& [a, b] : result_.constraints) {
      if (result_.constraints.contains({b, a})) report(InconsistencyKind::multiple_destroyers);
    }
    std::set<Edge> edges = result_.data;
    edges.insert(result_.constraints.begin(), result_.constraints.end());
    if (has_cycle(edges)) report(InconsistencyKind::ordering_cycle);
    edges.insert(transactions.begin(), transactions.end());
    if (has_cycle(edges)) report(InconsistencyKind::transaction);
  }

  bool has_cycle(const std::set<Edge>& edges) const {
    // Removes nodes without predecessors repeatedly; the remaining ones depend on a cycle.
    std::map<const ApplyNode*, int> n_before;
    for (const Apply& node : result_.nodes) n_before[node.node()] = 0;
    for (const auto& [a, b] : edges) ++n_before[b];
    std::vector<const ApplyNode*> open;
    for (const auto& [node, n] : n_before) {
      if (n == 0) open.push_back(node);
    }
    std::size_t n_done = 0;
    while (!open.empty()) {
      const ApplyNode* const node = open.back();
      open.pop_back();
      ++n_done;
      for (auto it = edges.lower_bound({node, nullptr}); it != edges.end() && it->first == node;
           ++it) {
        if (--n_before[it->second] == 0) open.push_back(it->second);
      }
    }
    return n_done < result_.nodes.size();
  }

  const FunctionGraph& graph_;
  Analysis result_;
  std::unordered_map<const VariableNode*, std::size_t> ids_;
  std::vector<Var> vars_;
};

bool leads(const std::map<const ApplyNode*, std::vector<const ApplyNode*>>& next,
           const ApplyNode* from, const ApplyNode* to) {
  std::vector<const ApplyNode*> open{from};
  std::set<const ApplyNode*> seen;
  while (!open.empty()) {
    const ApplyNode* const node = open.back();
    open.pop_back();
    const auto it = next.find(node);
    if (it == next.end()) continue;
    for (const ApplyNode* n : it->second) {
      if (n == to) return true;
      if (seen.insert(n).second) open.push_back(n);
    }
  }
  return false;
}

}  // namespace

Analysis analyse(const FunctionGraph& graph) { return Analyser(graph).run(); }

std::string difference(const FunctionGraph& graph) {
  const Analysis truth = analyse(graph);
  const Inconsistency answer = graph.check();
  if (answer.kind != truth.kind) {
    return "kind: got " + std::string(name_of(answer.kind)) + " (" + answer.text + "), expected " +
           std::string(name_of(truth.kind)) + " (" + truth.text + ")";
  }
  if (graph.consistent() != (truth.kind == InconsistencyKind::none)) return "verdict";
  std::set<Edge> found;
  std::map<const ApplyNode*, std::vector<const ApplyNode*>> next;
  for (const auto& [a, b] : graph.order_constraints()) {
    if (!truth.constraints.contains({a.node(), b.node()})) {
      return "constraint that is none: " + a.op().name() + " before " + b.op().name();
    }
    found.emplace(a.node(), b.node());
    next[a.node()].push_back(b.node());
  }
  for (const auto& [a, b] : truth.data) next[a].push_back(b);
  for (const auto& [a, b] : truth.constraints) {
    if (!found.contains({a, b}) && !leads(next, a, b)) {
      return "constraint that is missing: " + a->op->name() + " before " + b->op->name();
    }
  }
  if (truth.kind != InconsistencyKind::none) return {};
  std::map<const ApplyNode*, std::size_t> place;
  for (const Apply& node : graph.toposort()) place.emplace(node.node(), place.size());
  if (place.size() != truth.nodes.size()) return "number of nodes in toposort";
  for (const auto* edges : {&truth.data, &truth.constraints}) {
    for (const auto& [a, b] : *edges) {
      if (place.at(a) >= place.at(b))
        return "toposort: " + a->op->name() + " after " + b->op->name();
    }
  }
  return {};
}

}  // namespace palimpsest::reference
