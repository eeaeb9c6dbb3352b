// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/inplace_query.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest {
namespace {

using graph_detail::AliasEdge;
using graph_detail::Entry;
using graph_detail::GraphState;
using graph_detail::NodeInfo;
using graph_detail::Top;
using graph_detail::UseSlot;
using graph_detail::VarInfo;
using graph_detail::Walk;

// The fault that a replacement would meet, if it is known; `none`: it would meet none.
using Answer = std::optional<InconsistencyKind>;
constexpr Answer kUnclear = std::nullopt;
constexpr Answer kYes = InconsistencyKind::none;

// The inputs that a variant overwrites, each with: does it do nothing else to it than to put one
// output wholly in its place?
std::map<int, bool> simply_overwritten(const Apply& variant) {
  const Op& op = variant.op();
  const bool has_views = !op.view_map(variant).empty() || !op.output_aliases(variant).empty();
  std::map<int, bool> result;
  for (const int input : op.destroyed_inputs(variant)) result[input] = !has_views;
  std::set<int> written;
  for (const auto& [output, inputs] : op.destroy_map(variant)) {
    for (const int input : inputs) {
      const bool is_first = written.insert(input).second;
      result[input] = is_first && !has_views && inputs.size() == 1 &&
                      op.view_region(variant, output, input).is_whole();
    }
  }
  return result;
}

// True if the node reads the variable. Looks through the shorter list: its uses or the node's
// inputs.
bool reads(const NodeInfo& node, const VarInfo& v) {
  if (v.n_uses < node.slots.size()) {
    const UseSlot* slot = v.first;
    while (slot && !(slot->node == &node && slot->reads)) slot = slot->next;
    return slot != nullptr;
  }
  return std::any_of(node.slots.begin(), node.slots.end(),
                     [&](const UseSlot& slot) { return slot.var == &v && slot.reads; });
}

// True if a node that needs this node's results reads the variable. Looks only at the first nodes
// behind it: they often decide the question, for any number of readers.
bool is_read_soon_after(const NodeInfo& node, const VarInfo& v) {
  constexpr std::size_t kLooked = 16;
  std::vector<const NodeInfo*> behind{&node};
  for (std::size_t k = 0; k < behind.size() && k < kLooked; ++k) {
    std::size_t n = 0;
    const auto& outs = behind[k]->outs;
    for (const VarInfo* out = outs.begin(); out != outs.end() && n < kLooked; ++out, ++n) {
      for (const UseSlot* slot = out->first; slot && n < kLooked; slot = slot->next, ++n) {
        if (!slot->node) continue;
        if (reads(*slot->node, v)) return true;
        if (behind.size() < kLooked) behind.push_back(slot->node);
      }
    }
  }
  return false;
}

// The variable of which v is a view, if v is one and shows any of it; else null.
const VarInfo* shown_by(const VarInfo& v) {
  if (!v.owner || v.index < 0) return nullptr;
  const AliasEdge* found = nullptr;
  int count = 0;
  v.owner->for_each_edge_to(v.index, [&](const AliasEdge& e) {
    found = &e;
    ++count;
  });
  if (count != 1 || found->is_hidden || found->is_write || found->map.is_empty()) return nullptr;
  return v.owner->slots[static_cast<std::size_t>(found->in)].var;
}

// Facts of the present graph about a node that a variant would replace.
class Analysis {
 public:
  Analysis(const GraphState& state, NodeInfo& node, const Apply& variant)
      : state_(state), node_(node), variant_(variant), inputs_(simply_overwritten(variant)) {
    is_free_ = node.edges.empty() && node.records.empty() &&
               std::all_of(node.outs.begin(), node.outs.end(),
                           [](const VarInfo& out) { return out.entries.empty(); }) &&
               !(state.barrier() && variant.op().can_fail() != node.can_fail);
  }

  /// The answer for a variant that overwrites nothing but this input.
  Answer of_only(int input) const { return inputs_.size() == 1 ? of(input) : kUnclear; }
  /// The answers for variants that each overwrite one of the inputs that this one overwrites.
  std::map<int, Answer> of_each() const {
    std::map<int, Answer> result;
    for (const auto& [input, is_simple] : inputs_) result[input] = of(input);
    return result;
  }

 private:
  // Known where nothing else overwrites memory of the input or of the node's outputs.
  Answer of(int input) const {
    const auto found = inputs_.find(input);
    const bool is_simple = found != inputs_.end() && found->second;
    if (!state_.is_consistent() || state_.has_joins() || !is_simple) return kUnclear;
    VarInfo& destroyed = *node_.slots[static_cast<std::size_t>(input)].var;
    if (const InconsistencyKind kind = graph_detail::must_keep(destroyed);
        kind != InconsistencyKind::none) {
      return kind;
    }
    if (!is_free_) return kUnclear;
    for (const Entry& e : destroyed.entries) {
      // Each of the two writers reads the variable that the other one overwrites.
      if (e.is_member && variant_.op().reads(variant_, input) &&
          reads(*e.record->node, destroyed)) {
        return InconsistencyKind::multiple_destroyers;
      }
    }
    for (const VarInfo* v = &destroyed; v; v = shown_by(*v)) {
      if (is_read_soon_after(node_, *v)) return InconsistencyKind::ordering_cycle;
    }
    if (!destroyed.entries.empty()) return kUnclear;
    return by_walk(destroyed, input);
  }

  InconsistencyKind by_walk(VarInfo& destroyed, int input) const {
    const Region written =
        state_.regions_count() ? variant_.op().write_region(variant_, input) : Region::whole();
    // An array that must stay as it is settles it, however many views of it there are.
    for (const Top& top : state_.tops_of(destroyed, written, node_.reads_all)) {
      const InconsistencyKind kind = graph_detail::must_keep(*top.var);
      const bool meets = std::any_of(top.written.begin(), top.written.end(), [&](const Region& w) {
        return w.meets(Region::whole(), top.var->type());
      });
      if (kind != InconsistencyKind::none && meets) return kind;
    }
    const Walk walk = state_.walk(node_, destroyed, written, node_.reads_all);
    const auto fault = state_.fault_of(node_, variant_, input, walk.members);
    if (fault.first != InconsistencyKind::none) return fault.first;
    std::vector<NodeInfo*> readers;
    for (VarInfo* m : walk.members) {
      graph_detail::for_each_reader(*m, [&](const UseSlot& slot) {
        if (slot.node != &node_) readers.push_back(slot.node);
      });
    }
    const bool is_last = std::any_of(walk.tops.begin(), walk.tops.end(),
                                     [](const auto& top) { return top.var->is_last; });
    if (is_last && variant_.op().can_fail()) return InconsistencyKind::transaction;
    if (state_.order().leads_to(node_, readers)) return InconsistencyKind::ordering_cycle;
    NodeInfo* const barrier = state_.barrier();
    if (is_last && state_.order().leads_to(node_, {&barrier, 1})) {
      return InconsistencyKind::transaction;
    }
    return InconsistencyKind::none;
  }

  const GraphState& state_;
  NodeInfo& node_;
  const Apply& variant_;
  const std::map<int, bool> inputs_;  // overwritten, and whether simply
  bool is_free_ = false;
};

Inconsistency try_out(FunctionGraph& graph, const Apply& node, const Apply& variant) {
  std::vector<std::pair<Variable, Variable>> pairs;
  for (std::size_t k = 0; k < node.output_count(); ++k) {
    variant.output(k).set_indestructible(node.output(k).is_indestructible());
    pairs.emplace_back(node.output(k), variant.output(k));
  }
  const FunctionGraph::Token mark = graph.checkpoint();
  graph.replace_all(pairs, "inplace_candidates");
  Inconsistency fault = graph.check();
  graph.revert(mark);
  graph.release(mark);
  return fault;
}

// The variant on one input, if there is a kernel for it.
Apply variant_on(const Apply& node, int input, OpPtr& op) {
  op = node.op().inplace_on_inputs(node, {input});
  return op ? op->make_node(node.inputs()) : Apply();
}

NodeInfo& info_of(const FunctionGraph& graph, const Apply& node) {
  NodeInfo* const info = graph.state().find(node.node());
  if (!info || !info->in_graph) {
    throw ValueError("[inplace_candidates] " + node.op().name() + " is not in the graph");
  }
  return *info;
}

InconsistencyKind refusal(FunctionGraph& graph, NodeInfo& info, const Apply& variant, int input) {
  const Answer answer = Analysis(graph.state(), info, variant).of_only(input);
  return answer ? *answer : try_out(graph, info.apply, variant).kind;
}

}  // namespace

std::vector<InplaceCandidate> inplace_candidates(FunctionGraph& graph, const Apply& node) {
  NodeInfo& info = info_of(graph, node);
  std::vector<InplaceCandidate> result;
  for (int input = 0; input < static_cast<int>(node.input_count()); ++input) {
    OpPtr op;
    const Apply variant = variant_on(node, input, op);
    if (!op || !overwritten_inputs(variant).contains(input)) continue;
    InplaceCandidate& candidate = result.emplace_back(InplaceCandidate{input, op, {}});
    if (Analysis(graph.state(), info, variant).of_only(input) == kYes) continue;
    candidate.refusal = try_out(graph, node, variant);
  }
  return result;
}

std::vector<int> fast_inplace_check(FunctionGraph& graph, const Apply& node,
                                    std::span<const int> inputs) {
  NodeInfo& info = info_of(graph, node);
  std::vector<int> result;
  for (int input : inputs) {
    OpPtr op;
    const Apply variant = variant_on(node, input, op);
    if (!op || !overwritten_inputs(variant).contains(input)) continue;
    if (refusal(graph, info, variant, input) == InconsistencyKind::none) {
      result.push_back(input);
    }
  }
  return result;
}

InconsistencyKind inplace_refusal(FunctionGraph& graph, const Apply& node, const Apply& variant,
                                  int input) {
  return refusal(graph, info_of(graph, node), variant, input);
}

std::map<int, std::optional<InconsistencyKind>> inplace_refusals(FunctionGraph& graph,
                                                                 const Apply& node,
                                                                 const Apply& variant) {
  return Analysis(graph.state(), info_of(graph, node), variant).of_each();
}

}  // namespace palimpsest
