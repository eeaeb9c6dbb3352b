// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/inplace_query.hpp"

#include <algorithm>
#include <optional>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest {
namespace {

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

// Does the variant do nothing but put one output wholly in the place of the input?
bool is_simple(const Apply& variant, int input) {
  const Op& op = variant.op();
  const AliasMap destroys = op.destroy_map(variant);
  if (!op.view_map(variant).empty() || !op.output_aliases(variant).empty()) return false;
  const auto is_input_only = [&](const std::set<int>& inputs) {
    return inputs.size() == 1 && inputs.contains(input);
  };
  const std::set<int> others = op.destroyed_inputs(variant);
  if (destroys.empty()) return is_input_only(others);
  const auto& [output, overwritten] = *destroys.begin();
  return destroys.size() == 1 && is_input_only(overwritten) &&
         (others.empty() || is_input_only(others)) &&
         op.view_region(variant, output, input).is_whole();
}

bool reads(const NodeInfo& node, const VarInfo& v) {
  return std::any_of(node.slots.begin(), node.slots.end(),
                     [&](const UseSlot& slot) { return slot.var == &v && slot.reads; });
}

// Does something that needs the node's results read the variable? Only the first nodes behind it
// are looked at: often that settles it, however many readers there are.
bool is_read_soon_after(const NodeInfo& node, const VarInfo& v) {
  constexpr std::size_t kLooked = 16;
  std::vector<const NodeInfo*> behind{&node};
  for (std::size_t k = 0; k < behind.size() && k < kLooked; ++k) {
    for (const VarInfo& out : behind[k]->outs) {
      std::size_t n = 0;
      for (const UseSlot* slot = out.first; slot && n < kLooked; slot = slot->next, ++n) {
        if (!slot->node) continue;
        if (reads(*slot->node, v)) return true;
        if (behind.size() < kLooked) behind.push_back(slot->node);
      }
    }
  }
  return false;
}

// The answer from what is known about the present graph, where nothing else overwrites memory of
// the input or of the node's outputs.
Answer from_analysis(const GraphState& state, NodeInfo& node, const Apply& variant, int input) {
  if (!state.is_consistent() || state.has_joins() || !is_simple(variant, input)) {
    return kUnclear;
  }
  VarInfo& destroyed = *node.slots[static_cast<std::size_t>(input)].var;
  if (const InconsistencyKind kind = graph_detail::must_keep(destroyed);
      kind != InconsistencyKind::none) {
    return kind;
  }
  if (!node.edges.empty() || !node.records.empty()) return kUnclear;
  const bool is_free = std::all_of(node.outs.begin(), node.outs.end(),
                                   [](const VarInfo& out) { return out.entries.empty(); });
  if (!is_free) return kUnclear;
  const Op& op = variant.op();
  if (state.barrier() && op.can_fail() != node.can_fail) return kUnclear;
  bool is_shared = false;
  for (const Entry& e : destroyed.entries) {
    // The other writer reads what this node would overwrite, and this node reads what that one
    // overwrites.
    if (e.is_member && op.reads(variant, input) && reads(*e.record->node, destroyed)) {
      return InconsistencyKind::multiple_destroyers;
    }
    is_shared = true;
  }
  if (is_shared) return kUnclear;
  if (is_read_soon_after(node, destroyed)) return InconsistencyKind::ordering_cycle;
  const Region written = state.regions_count() ? op.write_region(variant, input) : Region::whole();
  // An array that must stay as it is settles it, however many views of it there are.
  for (const Top& top : state.tops_of(destroyed, written, node.reads_all())) {
    const InconsistencyKind kind = graph_detail::must_keep(*top.var);
    const bool meets = std::any_of(top.written.begin(), top.written.end(), [&](const Region& w) {
      return w.meets(Region::whole(), top.var->type());
    });
    if (kind != InconsistencyKind::none && meets) return kind;
  }
  const Walk walk = state.walk(node, destroyed, written, node.reads_all());
  const auto fault = state.fault_of(node, variant, input, walk.members);
  if (fault.first != InconsistencyKind::none) return fault.first;
  std::vector<NodeInfo*> readers;
  for (const VarInfo* m : walk.members) {
    for (const UseSlot* slot = m->first; slot; slot = slot->next) {
      if (!slot->node || slot->node == &node) continue;
      if (slot->reads) readers.push_back(slot->node);
    }
  }
  const bool is_last = std::any_of(walk.tops.begin(), walk.tops.end(),
                                   [](const auto& top) { return top.var->is_last; });
  if (is_last && op.can_fail()) return InconsistencyKind::transaction;
  if (state.order().leads_to(node, readers)) return InconsistencyKind::ordering_cycle;
  NodeInfo* const barrier = state.barrier();
  if (is_last && state.order().leads_to(node, {&barrier, 1})) {
    return InconsistencyKind::transaction;
  }
  return kYes;
}

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
  const Answer answer = from_analysis(graph.state(), info, variant, input);
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
    if (from_analysis(graph.state(), info, variant, input) == kYes) continue;
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

}  // namespace palimpsest
