// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/join_messages.hpp"

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/graph/collective.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

struct Group {
  std::vector<Apply> members;
  OpPtr joined;  // null: there is one member
};

int turn_of(const Apply& node) { return as_collective(node.op())->turn(); }

// The ops of several processes of a graph, after those that they need, inputs from first to last.
std::vector<Apply> walk_from_outputs(const FunctionGraph& graph) {
  std::vector<Apply> found;
  std::vector<std::pair<Apply, std::size_t>> path;  // and the input that comes next
  PointerSet<VariableNode> seen;
  const auto enter = [&](const Variable& v) {
    if (v.is_root() || !seen.insert(v.owner().output(0).node())) return;
    path.emplace_back(v.owner(), 0);
  };
  for (const Variable& output : graph.outputs()) {
    enter(output);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < node.input_count()) {
        enter(node.input(next++));
        continue;
      }
      if (as_collective(node.op())) found.push_back(node);
      path.pop_back();
    }
  }
  return found;
}

// Runs the ops of several processes of a graph by their turns.
class InTurn final : public Feature {
 public:
  void on_import(const FunctionGraph&, const Apply& node, std::string_view) override {
    if (as_collective(node.op())) nodes_.push_back(node);
  }
  void on_prune(const FunctionGraph&, const Apply& node, std::string_view) override {
    std::erase(nodes_, node);
  }
  std::vector<std::pair<Apply, Apply>> orderings(const FunctionGraph&) override {
    std::vector<Apply> sorted = nodes_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Apply& a, const Apply& b) { return turn_of(a) < turn_of(b); });
    std::vector<std::pair<Apply, Apply>> pairs;
    for (std::size_t k = 1; k < sorted.size(); ++k) {
      // While one takes the place of another both may be there.
      if (turn_of(sorted[k - 1]) < turn_of(sorted[k])) pairs.emplace_back(sorted[k - 1], sorted[k]);
    }
    return pairs;
  }

 private:
  std::vector<Apply> nodes_;
};

// True if the messages differ in their turn only.
bool is_equal(const Apply& a, const Apply& b) {
  return std::equal(a.inputs().begin(), a.inputs().end(), b.inputs().begin(), b.inputs().end()) &&
         *as_collective(a.op())->with_turn(-1) == *as_collective(b.op())->with_turn(-1);
}

// The first of each set of equal members.
std::vector<Apply> without_equal(const std::vector<Apply>& members) {
  std::vector<Apply> different;
  for (const Apply& node : members) {
    const bool is_known = std::any_of(different.begin(), different.end(),
                                      [&](const Apply& other) { return is_equal(node, other); });
    if (!is_known) different.push_back(node);
  }
  return different;
}

// Groups of nodes that need nothing of each other. A value needs the groups up to its stage.
class Grouping {
 public:
  void add(const Apply& node) {
    std::size_t stage = 0;
    for (const Variable& v : node.inputs()) {
      if (const std::size_t* const known = stages_.find(v.node())) stage = std::max(stage, *known);
    }
    if (const Collective* const op = as_collective(node.op()); op && op->turn() >= 0) {
      if (!joins_last(node, *op, stage)) groups.push_back({{node}, nullptr});
      stage = groups.size();
    }
    for (const Variable& v : node.outputs()) stages_.try_emplace(v.node(), stage);
  }

  std::vector<Group> groups;

 private:
  bool joins_last(const Apply& node, const Collective& op, std::size_t stage) {
    if (groups.empty() || stage == groups.size()) return false;
    Group& last = groups.back();
    std::vector<Apply> members = last.members;
    members.push_back(node);
    const std::vector<Apply> different = without_equal(members);
    OpPtr joined = different.size() == 1 ? OpPtr() : op.joined(different);
    if (different.size() > 1 && !joined) return false;
    last = {std::move(members), std::move(joined)};
    return true;
  }

  PointerMap<VariableNode, std::size_t> stages_;
};

// The outputs of the op that replaces a group, for each of its members.
std::vector<std::pair<Variable, Variable>> replacements(const Group& group) {
  const std::vector<Apply> different = without_equal(group.members);
  std::vector<Variable> inputs, outputs;
  for (const Apply& node : different) {
    inputs.insert(inputs.end(), node.inputs().begin(), node.inputs().end());
    for (const Variable& v : node.outputs()) outputs.push_back(v);
  }
  if (group.joined) {
    const OpPtr joined = as_collective(*group.joined)->with_turn(turn_of(group.members[0]));
    outputs = joined->make_node(inputs).outputs();
  }
  std::vector<std::pair<Variable, Variable>> pairs;
  for (const Apply& node : group.members) {
    std::size_t first = 0;
    for (const Apply& other : different) {
      if (is_equal(node, other)) break;
      first += other.output_count();
    }
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      if (node.output(k) != outputs[first + k]) {
        pairs.emplace_back(node.output(k), outputs[first + k]);
      }
    }
  }
  return pairs;
}

}  // namespace

void order_messages(FunctionGraph& graph) {
  const std::vector<Apply> nodes = walk_from_outputs(graph);
  if (nodes.empty()) return;
  graph.add_feature(std::make_shared<InTurn>());
  int turn = 0;
  for (const Apply& node : nodes) {
    // Inputs may have been replaced.
    const Apply with_turn = as_collective(node.op())->with_turn(turn++)->make_node(node.inputs());
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      pairs.emplace_back(node.output(k), with_turn.output(k));
    }
    graph.replace_all(pairs, "order_messages");
  }
}

RewriteResult join_messages(FunctionGraph& graph, const RewriteHints&) {
  Grouping grouping;
  for (const Apply& node : graph.toposort()) {
    // A branch that is not taken sends nothing.
    if (op_of<ops::IfElse>(node)) return 0;
    grouping.add(node);
  }
  RewriteResult result;
  for (const Group& group : grouping.groups) {
    if (group.members.size() == 1) continue;
    if (!replace_if_consistent(graph, replacements(group), "join_messages")) continue;
    result += static_cast<int>(group.members.size()) - 1;
  }
  return result;
}

}  // namespace palimpsest
