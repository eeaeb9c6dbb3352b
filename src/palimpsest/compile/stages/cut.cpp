// SPDX-License-Identifier: Apache-2.0
// Stages run in rounds: in each round first functions, the outer branches before the inner ones,
// and then the applications that run by themselves.
#include "palimpsest/compile/stages/cut.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"

namespace palimpsest {
namespace {

bool is_known(const Variable& v) { return v.type().is_fully_known(); }

// Choices whose branches fit whether or not they are taken: all extents are known, no step of a
// branch can fail or runs by itself, and no value is of a step that may be idle.
Branches::Nodes whole_choices(const FunctionGraph& graph, std::vector<Apply> order) {
  Branches::Nodes whole;
  const Branches branches(graph, order, Branches::Needs::extents_too);
  std::unordered_set<int> other;  // branches with a step that may not fit
  for (const Apply& node : order) {
    const auto* const choice = dynamic_cast<const ops::IfElse*>(&node.op());
    const auto fits = [&](const Variable& v) {
      return is_known(v) && !(v.owner().defined() && branches.may_be_idle(v.owner()));
    };
    bool is_safe = !node.op().can_fail() && std::ranges::all_of(node.inputs(), fits) &&
                   std::ranges::all_of(node.outputs(), is_known);
    if (choice) {
      is_safe = is_safe && !other.contains(branches.find(node, true)) &&
                !other.contains(branches.find(node, false));
      if (is_safe) whole.insert(node.node());
    } else {
      is_safe = is_safe && !ops::may_decide_extents(node);
    }
    int branch = is_safe ? -1 : branches.of(node);
    for (; branch >= 0 && other.insert(branch).second; branch = branches[branch].parent) {
    }
  }
  return whole;
}

class Cutter {
 public:
  Cutter(const FunctionGraph& graph, const std::vector<Apply>& order, const Branches::Nodes& whole,
         const Branches& branches)
      : graph_(graph), order_(order), branches_(branches) {
    for (const Apply& node : order) {
      if (ops::may_decide_extents(node) && !whole.contains(node.node())) {
        by_itself_.insert(node.node());
      }
    }
    if (by_itself_.empty()) {
      throw InternalError("[function] an op left extents open that no elements decide");
    }
  }

  std::vector<ProgramStage> run() {
    find_first_rounds();
    find_rounds();
    divide();
    find_values();
    return std::move(stages_);
  }

 private:
  bool is_by_itself(const Apply& node) const { return by_itself_.contains(node.node()); }

  template <class F>
  void for_each_condition(int branch, F f) const {
    for (; branch >= 0; branch = branches_[branch].parent) f(branches_[branch].condition);
  }

  // Rounds between a value and an application that reads it.
  int gap(const Variable& v, const Apply& reader) const {
    const Apply owner = v.owner();
    if (!owner.defined()) return 0;
    if (is_by_itself(owner)) return 1;
    const bool is_in_order =
        is_by_itself(reader) || branches_.is_within(branches_.of(reader), branches_.of(owner));
    return is_in_order ? 0 : 1;
  }

  int first_round_of(const Variable& v) const {
    return v.owner().defined() ? first_rounds_.at(v.owner().node()) : 0;
  }

  // A condition is known one round before the steps of its branches.
  void find_first_rounds() {
    for (const Apply& node : order_) {
      int& first = first_rounds_[node.node()];
      for (const Variable& v : node.inputs()) {
        first = std::max(first, first_round_of(v) + gap(v, node));
      }
      for_each_condition(branches_.of(node), [&](const Variable& condition) {
        first = std::max(first, first_round_of(condition) + 1);
      });
      n_rounds_ = std::max(n_rounds_, first + 2);
    }
  }

  void find_rounds() {
    rounds_ = first_rounds_;
    for (const Apply& node : order_) {
      if (!is_by_itself(node)) rounds_[node.node()] = n_rounds_ - 1;
    }
    const auto need = [&](const Variable& v, int round) {
      const Apply owner = v.owner();
      if (!owner.defined() || is_by_itself(owner)) return;
      rounds_[owner.node()] = std::min(rounds_[owner.node()], round);
    };
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      const int round = rounds_[node->node()];
      for (const Variable& v : node->inputs()) need(v, round - gap(v, *node));
      for_each_condition(branches_.of(*node), [&](const Variable& v) { need(v, round - 1); });
    }
  }

  void divide() {
    std::map<std::tuple<int, bool, int, int, std::size_t>, std::vector<Apply>> parts;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Apply& node = order_[i];
      const int round = rounds_.at(node.node()), branch = branches_.of(node);
      const int depth = branch < 0 ? -1 : branches_[branch].depth;
      if (is_by_itself(node)) {
        parts[{round, true, 0, 0, i}] = {node};
      } else if (branches_.may_be_idle(node)) {
        parts[{round, false, depth, branch, i + 1}] = {node};
      } else {
        parts[{round, false, depth, branch, 0}].push_back(node);
      }
    }
    for (auto& [place, nodes] : parts) {
      ProgramStage& stage = stages_.emplace_back(ProgramStage{
          .branch = branches_.of(nodes[0]), .is_needed = !branches_.may_be_idle(nodes[0])});
      if (is_by_itself(nodes[0])) stage.node = nodes[0];
      for (const Apply& node : nodes) stage_of_[node.node()] = stages_.size() - 1;
      nodes_.push_back(std::move(nodes));
    }
  }

  void find_values() {
    std::unordered_map<Variable, std::size_t> last;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      std::unordered_set<Variable> seen;
      for (const Apply& node : nodes_[s]) {
        for (const Variable& v : node.inputs()) {
          const Apply owner = v.owner();
          if (v.is_constant() || (owner.defined() && stage_of_[owner.node()] == s)) continue;
          last[v] = s;
          if (seen.insert(v).second) stages_[s].inputs.push_back(v);
        }
      }
      for_each_condition(stages_[s].branch, [&](const Variable& condition) {
        if (!condition.is_constant()) last[condition] = s;
      });
    }
    for (const Variable& v : graph_.outputs()) last[v] = stages_.size();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      ProgramStage& stage = stages_[s];
      for (const Apply& node : nodes_[s]) {
        for (const Variable& v : node.outputs()) {
          if (last.contains(v) || stage.node.defined()) stage.outputs.push_back(v);
          if (!last.contains(v) && stage.node.defined()) stage.last.push_back(v);
        }
      }
      for (const Variable& v : stage.inputs) {
        stage.is_lent.push_back(v.owner().defined() && last[v] == s);
      }
    }
    for (const auto& [v, s] : last) {
      if (s < stages_.size()) stages_[s].last.push_back(v);
    }
  }

  const FunctionGraph& graph_;
  const std::vector<Apply>& order_;
  const Branches& branches_;
  std::unordered_set<const ApplyNode*> by_itself_;
  // The first round in which the inputs can be there, and the one in which it runs.
  std::unordered_map<const ApplyNode*, int> first_rounds_, rounds_;
  int n_rounds_ = 1;
  std::vector<ProgramStage> stages_;
  std::vector<std::vector<Apply>> nodes_;  // per stage
  std::unordered_map<const ApplyNode*, std::size_t> stage_of_;
};

}  // namespace

Cut::Cut(const FunctionGraph& graph)
    : order(graph.toposort()),
      whole(whole_choices(graph, order)),
      branches(graph, order, Branches::Needs::extents_too, whole),
      stages(Cutter(graph, order, whole, branches).run()) {}

}  // namespace palimpsest
