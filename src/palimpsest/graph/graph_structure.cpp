// SPDX-License-Identifier: Apache-2.0
// Nodes, uses and the data order: the state that an edit changes.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest::graph_detail {
namespace {

// The hidden buffer of a node has no type that anybody could compose with.
const TensorType& hidden_type() {
  return immortal([] { return TensorType(); });
}

}  // namespace

const TensorType& VarInfo::type() const { return v ? v->type : hidden_type(); }

Variable VarInfo::handle() const {
  if (!v) return {};
  if (owner) return owner->apply.output(static_cast<std::size_t>(index));
  return static_cast<const RootInfo*>(this)->root;
}

void NodeInfo::set_edges(std::vector<AliasEdge> list) {
  constexpr std::size_t kManyEdges = 8;
  edges = std::move(list);
  const auto sort_by = [&](std::vector<int>& sorted, int AliasEdge::*end) {
    sorted.resize(edges.size() > kManyEdges ? edges.size() : 0);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
      return edges[static_cast<std::size_t>(a)].*end < edges[static_cast<std::size_t>(b)].*end;
    });
  };
  sort_by(edges_by_input, &AliasEdge::in);
  sort_by(edges_by_output, &AliasEdge::out);
}

const Record* NodeInfo::record_on(int input) const {
  const auto it = std::partition_point(records.begin(), records.end(),
                                       [&](const Record& r) { return r.input < input; });
  return it != records.end() && it->input == input ? &*it : nullptr;
}
Record* NodeInfo::record_on(int input) {
  return const_cast<Record*>(std::as_const(*this).record_on(input));
}

NodeInfo* GraphState::find(const ApplyNode* node) const {
  const auto* const found = nodes_.find(node);
  return found ? found->get() : nullptr;
}

VarInfo* GraphState::find(const Variable& v) const {
  if (const ApplyNode* owner = v.node()->owner) {
    if (NodeInfo* node = find(owner)) return &node->outs[static_cast<std::size_t>(v.index())];
  }
  const auto* const found = roots_.find(v.node());
  return found ? found->get() : nullptr;
}

VarInfo& GraphState::need(const Variable& v) {
  if (VarInfo* known = find(v)) return *known;
  auto info = std::make_unique<RootInfo>();
  info->v = v.node();
  info->root = v;
  return **roots_.try_emplace(v.node(), std::move(info)).first;
}

NodeInfo& GraphState::create(const Apply& apply, std::uint64_t position, NodeInfo* place) {
  auto node = std::make_unique<NodeInfo>(apply);
  node->position = position;
  for (std::size_t i = 0; i < node->slots.size(); ++i) {
    node->slots[i].node = node.get();
    node->slots[i].index = static_cast<int>(i);
  }
  for (std::size_t k = 0; k < node->outs.size(); ++k) {
    node->outs[k].v = &apply.node()->outputs[k];
    node->outs[k].owner = node.get();
    node->outs[k].index = static_cast<int>(k);
  }
  order_.insert_before(*node, place);
  return **nodes_.try_emplace(apply.node(), std::move(node)).first;
}

void GraphState::insert(NodeInfo& node) {
  node.in_graph = true;
  ++n_nodes_;
}

void GraphState::erase(NodeInfo& node) {
  node.in_graph = false;
  --n_nodes_;
}

void GraphState::destroy(NodeInfo& node) {
  stale_.erase(&node);
  uncounted_.erase(&node);
  order_.remove(node);
  nodes_.erase(node.apply.node());
}

void GraphState::move_before(NodeInfo& node, NodeInfo* place) {
  if (place == &node) return;
  order_.remove(node);
  order_.insert_before(node, place);
}

void GraphState::link(UseSlot& slot, VarInfo& v) { relink(slot, v, v.last, nullptr); }

void GraphState::relink(UseSlot& slot, VarInfo& v, UseSlot* prev, UseSlot* next) {
  slot.var = &v;
  slot.prev = prev;
  slot.next = next;
  (prev ? prev->next : v.first) = &slot;
  (next ? next->prev : v.last) = &slot;
  ++v.n_uses;
  if (!slot.node) ++v.n_outputs;
  VarInfo* const last = slot.last;
  try {
    keep_data_order(slot);
  } catch (...) {
    take_out(slot);
    slot.last = last;
    throw;
  }
  if (slot.node && last != &v) {
    slot.node->apply.node()->inputs[static_cast<std::size_t>(slot.index)] = v.handle();
  }
  after_link(slot);
}

void GraphState::unlink(UseSlot& slot) {
  drop(slot);
  take_out(slot);
}

void GraphState::take_out(UseSlot& slot) {
  VarInfo& v = *slot.var;
  (slot.prev ? slot.prev->next : v.first) = slot.next;
  (slot.next ? slot.next->prev : v.last) = slot.prev;
  --v.n_uses;
  if (!slot.node) --v.n_outputs;
  if (v.n_uses == 0 && !v.owner) idle_roots_.insert(v.v);
  slot.last = &v;
  slot.var = nullptr;
  edge_gone_ = edge_gone_ || v.owner;
}

// A data edge has precedence: constraints that contradict it are set aside.
void GraphState::keep_data_order(UseSlot& slot) {
  NodeInfo* const user = slot.node;
  NodeInfo* const producer = slot.var->owner;
  if (!user || !producer) return;
  while (!order_.make_before(*producer, *user)) {
    const std::vector<NodeInfo*> path =
        producer == user ? std::vector{user} : order_.path(*user, *producer);
    bool is_data = true;
    for (std::size_t k = 0; k + 1 < path.size(); ++k) {
      const Constraint* const constraint = path[k + 1]->before.find(path[k]);
      const auto& slots = path[k + 1]->slots;
      const bool by_data = std::any_of(slots.begin(), slots.end(), [&](const UseSlot& s) {
        return s.var && s.var->owner == path[k];
      });
      if (by_data || !constraint || constraint->is_aside) continue;
      set_aside(*path[k], *path[k + 1]);
      is_data = false;
    }
    if (!is_data) continue;
    const std::string old = slot.last ? slot.last->handle().str() + " by " : "";
    std::string text = "[replace] " + old + slot.var->handle().str() + " would close a data cycle:";
    for (const NodeInfo* n : path) text += " " + n->apply.op().name();
    throw CycleError(text);
  }
}

void GraphState::after_link(UseSlot& slot) {
  NodeInfo* const node = slot.node;
  if (node && slot.last && slot.last != slot.var) {
    const VariableNode &now = *slot.var->v, &before = *slot.last->v;
    if (now.is_constant || before.is_constant || !(now.type == before.type)) stale_.insert(node);
  }
  raise(slot);
}

void GraphState::set_protected(VarInfo& v, bool value) {
  if (v.is_protected == value) return;
  v.is_protected = value;
  if (!value && v.n_uses == 0 && !v.owner) idle_roots_.insert(v.v);
  end_run(v);
  queue_all_at(v, true);
}

// All nodes that can fail precede the barrier while there is something that it guards.
void GraphState::set_overwritten_last(VarInfo& v, bool value) {
  if (v.is_last == value) return;
  if (!barrier_) {
    barrier_ = std::make_unique<NodeInfo>();
    barrier_->position = ~std::uint64_t{0};
    barrier_->in_graph = true;
    order_.insert_before(*barrier_, nullptr);
  }
  v.is_last = value;
  n_last_ += value ? 1 : -1;
  if (n_last_ == (value ? 1 : 0)) {
    for (const auto& [key, node] : nodes_) {
      if (node->can_fail) add_support(*node, *barrier_, value ? 1 : -1);
    }
  }
  queue_all_at(v, false);
}

void GraphState::forget_roots() {
  for (const VariableNode* key : idle_roots_) {
    const RootInfo& v = **roots_.find(key);
    if (v.n_uses == 0 && !v.is_input && !v.is_protected && !v.is_last) roots_.erase(key);
  }
  idle_roots_.clear();
}

// -- declarations of ops ---------------------------------------------------------------------

void GraphState::read_declarations(NodeInfo& node) {
  const Op& op = node.apply.op();
  std::vector<AliasEdge> edges;
  node.is_declared = true;
  node.reads_all = true;
  for (UseSlot& slot : node.slots) {
    slot.reads = op.reads(node.apply, slot.index);
    node.reads_all = node.reads_all && slot.reads;
  }
  const AliasMap views = op.view_map(node.apply), destroys = op.destroy_map(node.apply);
  const auto add = [&](const AliasMap& map, bool is_write) {
    for (const auto& [out, inputs] : map) {
      for (int in : inputs) {
        Region region = op.view_region(node.apply, out, in);
        if (!alias_regions_ && !is_write) region = Region::unknown();
        edges.push_back({out, in, false, is_write, std::move(region)});
      }
    }
  };
  add(views, false);
  add(destroys, true);
  const std::vector<std::set<int>> groups = op.output_aliases(node.apply);
  node.hidden.resize(std::max(node.hidden.size(), groups.size()));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    node.hidden[g].owner = &node;
    node.hidden[g].index = -1;
    for (int out : groups[g]) {
      edges.push_back({out, static_cast<int>(g), true, false, Region::unknown()});
    }
  }
  node.set_edges(std::move(edges));
  const std::set<int> overwritten = overwritten_inputs(node.apply);
  node.records.reserve(overwritten.size());
  for (int input : overwritten) {
    Record& record = node.records.emplace_back();
    record.node = &node;
    record.input = input;
    if (alias_regions_) record.written = op.write_region(node.apply, input);
    records_.insert(&record);
  }
}

// Outputs with several alias parents, and several outputs in the memory of one overwritten
// variable: beside these a walk must not stop at an earlier writer. A choice between views does
// less harm, since its node reads them: what it shows is overwritten after it, or it is a fault.
// Beside one a walk stops at those who overwrote the whole of a variable.
void GraphState::count_joins(NodeInfo& node) {
  const auto parent = [&](const AliasEdge& e) -> const VarInfo* {
    const auto i = static_cast<std::size_t>(e.in);
    return e.is_hidden ? &node.hidden[i] : node.slots[i].var;
  };
  // Counts pairs of edges of one output, and pairs of edges of one parent with at least one write.
  std::map<int, std::pair<int, bool>> of_output;            // all, whether one is of no choice
  std::map<const VarInfo*, std::pair<int, int>> of_parent;  // all, those that only read
  for (const AliasEdge& e : node.edges) {
    auto& [count, is_other] = of_output[e.out];
    ++count;
    is_other |= e.is_hidden || e.is_write || !node.slots[static_cast<std::size_t>(e.in)].reads;
    auto& [all, views] = of_parent[parent(e)];
    ++all;
    if (!e.is_write) ++views;
  }
  const auto pairs = [](int k) { return k * (k - 1) / 2; };
  int n = 0;
  int n_choices = 0;
  for (const auto& [out, counts] : of_output) {
    (counts.second ? n : n_choices) += pairs(counts.first);
  }
  for (const auto& [var, counts] : of_parent) n += pairs(counts.first) - pairs(counts.second);
  add_joins(n - node.n_joins, n_choices - node.n_choices);
  node.n_joins = n;
  node.n_choices = n_choices;
}

void GraphState::add_joins(int n, int n_choices) {
  const bool had_joins = n_joins_ > 0, had_choices = n_choices_ > 0;
  n_joins_ += n;
  n_choices_ += n_choices;
  if (had_joins == (n_joins_ > 0) && had_choices == (n_choices_ > 0)) return;
  for (Record* record : records_) queue(*record);
}

void GraphState::declare(NodeInfo& node) {
  read_declarations(node);
  node.can_fail = node.apply.op().can_fail();
  if (node.can_fail && n_last_ > 0) add_support(node, *barrier_, 1);
  if (node.edges.size() > 1) uncounted_.insert(&node);
  for (Record& record : node.records) queue(record);
  for (UseSlot& slot : node.slots) raise(slot);
}

void GraphState::undeclare(NodeInfo& node) {
  for (UseSlot& slot : node.slots) drop(slot);
  for (const AliasEdge& e : node.edges) {
    queue_all_at(node.outs[static_cast<std::size_t>(e.out)], false);
  }
  for (Record& record : node.records) {
    clear(record);
    if (record.is_join) add_joins(-1);
    records_.erase(&record);
  }
  std::erase_if(queue_, [&](const Record* record) { return record->node == &node; });
  if (node.can_fail && n_last_ > 0) add_support(node, *barrier_, -1);
  node.can_fail = false;
  node.records.clear();
  node.set_edges({});
  node.reads_all = true;
  node.is_declared = false;
  node.hidden.clear();
  uncounted_.erase(&node);
  doubtful_.erase(&node);
  add_joins(-std::exchange(node.n_joins, 0), -std::exchange(node.n_choices, 0));
}

}  // namespace palimpsest::graph_detail
