// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/node_rewrite.hpp"

#include <algorithm>
#include <deque>

#include "palimpsest/base/pointer_map.hpp"

namespace palimpsest {
namespace {

// Replacements per node of a graph beyond which rewrites are taken to go round in circles.
constexpr std::size_t kMostReplacementsPerNode = 32;

using Pairs = std::vector<std::pair<Variable, Variable>>;

// The applications that a replacement brings into the graph.
std::vector<Apply> newcomers(const FunctionGraph& graph, const Pairs& pairs) {
  std::vector<Apply> found;
  PointerSet<const ApplyNode> seen;
  const auto visit = [&](const Variable& v) {
    const Apply owner = v.owner();
    if (!owner.defined() || graph.is_input(v) || graph.contains(owner)) return;
    if (seen.insert(owner.node())) found.push_back(owner);
  };
  for (const auto& [old, with] : pairs) visit(with);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::size_t k = 0; k < found[i].input_count(); ++k) {
      const Variable input = found[i].input(k);
      visit(input);
    }
  }
  return found;
}

// True if the replacement keeps the tags of the old value. A new node gets these tags.
bool keeps_tags(const FunctionGraph& graph, const Variable& old, const Variable& with) {
  if (old.tags() == with.tags()) return true;
  const Apply owner = with.owner();
  return owner.defined() && !graph.contains(owner);
}

enum class Attempt { applied, refused, nothing };

Attempt put_into(FunctionGraph& graph, const Apply& node, const Replacements& with,
                 std::string_view reason, std::vector<Apply>* fresh) {
  if (with.size() != node.output_count()) {
    throw ValueError("[" + std::string(reason) + "] replacements of " + node.op().name() +
                     ": got " + std::to_string(with.size()) + ", expected " +
                     std::to_string(node.output_count()));
  }
  Pairs pairs;
  for (std::size_t k = 0; k < with.size(); ++k) {
    const Variable old = node.output(k);
    if (!with[k].defined() || with[k] == old || graph.use_count(old) == 0) continue;
    if (!keeps_tags(graph, old, with[k])) return Attempt::nothing;
    pairs.emplace_back(old, with[k]);
  }
  if (pairs.empty()) return Attempt::nothing;
  *fresh = newcomers(graph, pairs);
  for (const auto& [old, by] : pairs) {
    const bool is_computed = by.owner().defined();
    if (is_computed && by.name().empty() && !old.name().empty()) by.named(old.name());
  }
  try {
    graph.replace_all_validate(pairs, reason);
  } catch (const InconsistencyError&) {
    return Attempt::refused;
  }
  return Attempt::applied;
}

class Walker {
 public:
  Walker(FunctionGraph& graph, std::span<const NodeRewrite> rewrites)
      : graph_(graph), rewrites_(rewrites) {}

  RewriteResult once(WalkOrder order) {
    std::vector<Apply> nodes = graph_.toposort();
    if (order == WalkOrder::outputs_first) std::reverse(nodes.begin(), nodes.end());
    for (const Apply& node : nodes) {
      if (graph_.contains(node)) visit(node);
    }
    return result_;
  }

  RewriteResult until_stable() {
    const std::vector<Apply> nodes = graph_.toposort();
    for (const Apply& node : nodes) push(node);
    const std::size_t most = kMostReplacementsPerNode * (nodes.size() + 1);
    while (!queue_.empty()) {
      const Apply node = queue_.front();
      queue_.pop_front();
      waiting_.erase(node.node());
      if (!graph_.contains(node)) continue;
      if (!visit(node)) continue;
      if (static_cast<std::size_t>(result_.applied) > most) {
        throw InternalError("[" + last_ + "] replaces without end: got " +
                            std::to_string(result_.applied) + " replacements in a graph of " +
                            std::to_string(nodes.size()) + " nodes");
      }
    }
    return result_;
  }

 private:
  void push(const Apply& node) {
    if (node.defined() && waiting_.insert(node.node())) queue_.push_back(node);
  }

  // Neighbours of a replacement may match now.
  void push_around(const Apply& node, const Replacements& with, const std::vector<Apply>& fresh) {
    for (auto it = fresh.rbegin(); it != fresh.rend(); ++it) push(*it);
    for (const Variable& v : with) {
      if (!v.defined()) continue;
      push(v.owner());
      for (const Use& use : graph_.uses(v)) push(use.node);
    }
    for (const Variable& v : node.inputs()) push(v.owner());
  }

  bool visit(const Apply& node) {
    for (const NodeRewrite& rewrite : rewrites_) {
      const Replacements with = rewrite.apply(graph_, node);
      if (with.empty()) continue;
      std::vector<Apply> fresh;
      switch (put_into(graph_, node, with, rewrite.name, &fresh)) {
        case Attempt::applied:
          ++result_.applied;
          last_ = rewrite.name;
          push_around(node, with, fresh);
          return true;
        case Attempt::refused:
          ++result_.refused;
          break;
        case Attempt::nothing:
          break;
      }
    }
    return false;
  }

  FunctionGraph& graph_;
  std::span<const NodeRewrite> rewrites_;
  RewriteResult result_;
  std::deque<Apply> queue_;
  PointerSet<const ApplyNode> waiting_;
  std::string last_;
};

}  // namespace

RewriteResult walk(FunctionGraph& graph, std::span<const NodeRewrite> rewrites, WalkOrder order) {
  return Walker(graph, rewrites).once(order);
}

RewriteResult walk_to_fixed_point(FunctionGraph& graph, std::span<const NodeRewrite> rewrites) {
  return Walker(graph, rewrites).until_stable();
}

RewriteResult substitute(FunctionGraph& graph, const Op& op, const OpPtr& other,
                         std::string_view reason) {
  const NodeRewrite rewrite{std::string(reason),
                            [&](const FunctionGraph&, const Apply& node) -> Replacements {
                              if (!(node.op() == op) || node.op() == *other) return {};
                              return other->make_node(node.inputs()).outputs();
                            }};
  return walk(graph, {&rewrite, 1});
}

}  // namespace palimpsest
