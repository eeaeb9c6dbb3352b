// SPDX-License-Identifier: Apache-2.0
// The incremental alias analysis: it finds the variables that share the memory that a node
// overwrites, and the nodes that must therefore come first.
//
// A walk goes up from the overwritten variable to the tops, the variables that alias no further
// ones. From each top it goes down by alias edges to every variable whose region meets the written
// region. It stops upward at an output that took over the whole written region from an earlier
// writer: all nodes above precede that writer already. Where it may stop, it also passes runs in
// one step.
#include <algorithm>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest::graph_detail {
namespace {

// Beyond so many ways to one variable its region counts as unknown.
constexpr std::size_t kMostWays = 64;

template <class F>
void for_each_parent(const VarInfo& v, F&& f) {
  if (!v.owner || v.index < 0) return;
  v.owner->for_each_edge_to(v.index, [&](const AliasEdge& e) { f(v.owner->parent(e), e); });
}

template <class F>
void for_each_child(const VarInfo& v, F&& f) {
  if (!v.v) {
    for (const AliasEdge& e : v.owner->edges) {
      if (e.is_hidden && &v.owner->hidden[static_cast<std::size_t>(e.in)] == &v) {
        f(v.owner->outs[static_cast<std::size_t>(e.out)], e);
      }
    }
    return;
  }
  for (const UseSlot* slot = v.first; slot; slot = slot->next) {
    if (!slot->node) continue;
    slot->node->for_each_edge_from(slot->index, [&](const AliasEdge& e) {
      f(slot->node->outs[static_cast<std::size_t>(e.out)], e);
    });
  }
}

// The uses of these variables by the node, but for one input of it.
template <class F>
void for_each_other_use(const NodeInfo& node, int input, const std::vector<VarInfo*>& of, F&& f) {
  for (const VarInfo* v : of) {
    if (v->n_uses > node.slots.size()) {
      for (const UseSlot& slot : node.slots) {
        if (slot.var == v && slot.index != input) f(slot);
      }
      continue;
    }
    for (const UseSlot* slot = v->first; slot; slot = slot->next) {
      if (slot->node == &node && slot->index != input) f(*slot);
    }
  }
}

// The regions with which a walk has come to each variable.
class WaysTo {
 public:
  // False: it has been there with this region before. Makes the region unknown where there are too
  // many ways.
  bool add(VarInfo& v, Region& region) {
    std::vector<Region>& regions = regions_[&v];
    if (regions.size() >= kMostWays) region = Region::unknown();
    if (std::find(regions.begin(), regions.end(), region) != regions.end()) return false;
    regions.push_back(region);
    return true;
  }

 private:
  PointerMap<VarInfo, std::vector<Region>> regions_;
};

// Variables that exist only after a node has run. Looks at each variable once, at all above it.
class After {
 public:
  explicit After(const NodeInfo& node) : node_(node) {}

  bool holds(VarInfo& v) {
    std::vector<std::pair<VarInfo*, bool>> open{{&v, false}};  // whether its parents are known
    while (!open.empty()) {
      VarInfo* const top = open.back().first;
      if (std::exchange(open.back().second, true)) {
        bool& is_after = *known_.find(top);
        for_each_parent(*top, [&](VarInfo& parent, const AliasEdge&) {
          is_after = is_after || *known_.find(&parent);
        });
        open.pop_back();
      } else if (known_.try_emplace(top, top->owner == &node_).second) {
        for_each_parent(*top, [&](VarInfo& parent, const AliasEdge&) {
          if (!known_.contains(&parent)) open.emplace_back(&parent, false);
        });
      } else {
        open.pop_back();
      }
    }
    return *known_.find(&v);
  }
  const PointerMap<VarInfo, bool>& looked_at() const { return known_; }

 private:
  const NodeInfo& node_;
  PointerMap<VarInfo, bool> known_;
};

bool meets_any(const std::vector<Region>& written, const Region& shown, const TensorType& type) {
  return std::any_of(written.begin(), written.end(),
                     [&](const Region& w) { return w.meets(shown, type); });
}

// True if several outputs lie in memory of inputs.
bool has_many_outputs(const NodeInfo& node) {
  return std::any_of(node.edges.begin(), node.edges.end(),
                     [&](const AliasEdge& e) { return e.out != node.edges.front().out; });
}

}  // namespace

bool took_over(const AliasEdge& e, const NodeInfo& writer, const Region& region) {
  if (!e.is_write || !e.map.is_whole()) return false;
  const Record* const record = writer.record_on(e.in);
  return record && record->written.covers(region);
}

InconsistencyKind must_keep(const VarInfo& m) {
  if (!m.v) return InconsistencyKind::none;
  if (m.v->is_constant) return InconsistencyKind::destroys_constant;
  if (m.v->tags.indestructible) return InconsistencyKind::destroys_indestructible;
  if (m.is_protected) return InconsistencyKind::destroys_protected;
  if (m.n_outputs > 0) return InconsistencyKind::destroys_output;
  return InconsistencyKind::none;
}

// -- walks -----------------------------------------------------------------------------------

std::vector<Top> GraphState::tops_of(VarInfo& destroyed, const Region& written,
                                     bool may_stop) const {
  std::vector<Top> tops;
  WaysTo ways;
  std::vector<std::pair<VarInfo*, Region>> open;
  const bool passes_parts = n_choices_ == 0;
  const auto visit = [&](VarInfo& v, Region region) {
    if (ways.add(v, region)) open.emplace_back(&v, std::move(region));
  };
  visit(destroyed, written);
  while (!open.empty()) {
    const auto [v, region] = std::move(open.back());
    open.pop_back();
    bool is_top = true, is_cut = false;
    for_each_parent(*v, [&](VarInfo& parent, const AliasEdge& e) {
      if (may_stop && took_over(e, *v->owner, passes_parts ? region : Region::whole())) {
        is_cut = true;
        return;
      }
      is_top = false;
      Region part = region.within(e.map, parent.type());
      VarInfo& next = may_stop && passes_parts && parent.run ? upper_end(parent, part) : parent;
      visit(next, std::move(part));
    });
    if (!is_top && !is_cut) continue;
    const auto it =
        std::find_if(tops.begin(), tops.end(), [&](const Top& t) { return t.var == v; });
    if (it == tops.end()) {
      tops.push_back({v, {region}});
    } else {
      it->written.push_back(region);
    }
  }
  return tops;
}

// Finding out whether the value of a choice exists only after the node takes a look at all above
// it. If it does, and is a member by the other way, the choice reads what the node overwrites after
// it: a constraint is set aside. So the look is taken then only, and for the kind of a fault.
Walk GraphState::walk(const NodeInfo& node, VarInfo& destroyed, const Region& written,
                      bool may_stop) const {
  may_stop = may_stop && n_joins_ == 0;
  Walk found = walk_through(node, destroyed, written, may_stop, may_stop);
  const auto is_kept = [](const VarInfo* m) { return must_keep(*m) != InconsistencyKind::none; };
  if (!found.trusts_choices || std::none_of(found.members.begin(), found.members.end(), is_kept)) {
    return found;
  }
  return walk_through(node, destroyed, written, may_stop, false);
}

Walk GraphState::walk_through(const NodeInfo& node, VarInfo& destroyed, const Region& written,
                              bool may_stop, bool trusts_choices) const {
  Walk walk;
  walk.tops = tops_of(destroyed, written, may_stop);
  PointerSet<VarInfo> members;
  After after(node);
  for (std::size_t t = 0; t < walk.tops.size(); ++t) {
    const Top& top = walk.tops[t];
    WaysTo ways;
    std::vector<std::pair<VarInfo*, Region>> open;
    const auto visit = [&](VarInfo& v, Region map) {
      if (v.owner == &node && v.index >= 0) return;
      if (!meets_any(top.written, map, top.var->type()) || !ways.add(v, map)) return;
      int n_parents = 0;
      for_each_parent(v, [&](VarInfo&, const AliasEdge&) { ++n_parents; });
      if (n_parents > 1) walk.trusts_choices |= trusts_choices;
      if (n_parents > 1 && !trusts_choices && after.holds(v)) return;
      const bool is_first = members.insert(&v);
      if (is_first) walk.members.push_back(&v);
      walk.visits.push_back({&v, {nullptr, t, map, true, is_first}});
      open.emplace_back(&v, std::move(map));
    };
    visit(*top.var, Region::whole());
    while (!open.empty()) {
      const auto [v, map] = std::move(open.back());
      open.pop_back();
      const auto go_down = [&](VarInfo& child, const AliasEdge& e) {
        visit(child, e.map.within(map, top.var->type()));
      };
      if (may_stop && n_choices_ == 0 && v->run && map.is_whole()) {
        if (VarInfo& end = lower_end(node, *v); &end != v) {
          walk.runs.push_back(v->run);
          for (const auto& [child, edge] : v->run->views.near(top.written, v->place, end.place)) {
            go_down(*child, *edge);
          }
          visit(end, map);
          continue;
        }
      }
      const ManyUses* const many = map.is_whole() ? many_uses(*v) : nullptr;
      if (many) {
        for (const auto& [child, edge] : many->children().near(top.written)) go_down(*child, *edge);
      } else {
        for_each_child(*v, go_down);
      }
    }
  }
  for (const auto& [v, is_after] : after.looked_at()) walk.visits.push_back({v, {}});
  return walk;
}

std::pair<InconsistencyKind, VarInfo*> GraphState::fault_of(
    const NodeInfo& node, const Apply& writer, int input,
    const std::vector<VarInfo*>& members) const {
  std::pair<InconsistencyKind, VarInfo*> worst{InconsistencyKind::none, nullptr};
  const auto report = [&](InconsistencyKind kind, VarInfo* m) {
    if (kind == InconsistencyKind::none) return;
    if (worst.second == nullptr || kind < worst.first) worst = {kind, m};
  };
  const VarInfo* const destroyed = node.slots[static_cast<std::size_t>(input)].var;
  for (VarInfo* m : members) report(must_keep(*m), m);
  const UseSlot* first = nullptr;
  for_each_other_use(node, input, members, [&](const UseSlot& slot) {
    if (first && first->index < slot.index) return;
    const std::pair both{input, slot.index};
    if (writer.op().tolerate_aliased(writer).contains(both)) return;
    if (slot.var == destroyed && writer.op().tolerate_same(writer).contains(both)) return;
    first = &slot;
  });
  if (first) report(InconsistencyKind::input_aliasing, first->var);
  return worst;
}

bool GraphState::is_overwritten(const Variable& v) const {
  const VarInfo* const info = find(v);
  return info && std::any_of(info->entries.begin(), info->entries.end(),
                             [](const Entry& e) { return e.is_member; });
}

bool GraphState::has_no_elements(const Variable& v) const {
  VarInfo* const info = find(v);
  const std::vector<Top> tops = info ? tops_of(*info, Region::whole(), false) : std::vector<Top>();
  return info && std::none_of(tops.begin(), tops.end(), [](const Top& top) {
           return meets_any(top.written, Region::whole(), top.var->type());
         });
}

// -- records ---------------------------------------------------------------------------------

void GraphState::queue(Record& record) {
  if (record.is_queued) return;
  clear(record);
  record.is_queued = true;
  queue_.push_back(&record);
}

void GraphState::clear(Record& record) {
  for (VarInfo* v : record.seen) {
    std::erase_if(v->entries, [&](const Entry& e) { return e.record == &record; });
  }
  for (const auto& [reader, count] : record.support) add_support(*reader, *record.node, -count);
  for (Run* run : record.runs) run->passed.erase(&record);
  record.runs.clear();
  record.seen.clear();
  record.members.clear();
  record.tops.clear();
  record.support.clear();
  if (record.is_last) add_support(*barrier_, *record.node, -1);
  record.is_last = false;
  record.fault = InconsistencyKind::none;
  faulty_.erase(&record);
}

void GraphState::queue_all_at(VarInfo& v, bool members_only) {
  std::vector<Record*> found;
  for (const Entry& e : v.entries) {
    if (e.is_member || !members_only) found.push_back(e.record);
  }
  for (Record* record : found) queue(*record);
}

// Queues the node's own records that a change of this use may concern: that of the input, and those
// whose walks pass its variable.
void GraphState::queue_those_at(NodeInfo& node, const UseSlot& slot) {
  if (node.records.empty()) return;
  std::vector<Record*> found;
  if (Record* const record = node.record_on(slot.index)) found.push_back(record);
  for (const Entry& e : slot.var->entries) {
    if (e.record->node == &node) found.push_back(e.record);
  }
  for (Record* record : found) queue(*record);
}

// True if another output of the node lies in memory that overlaps the overwritten input. Then a
// walk must not stop at the node.
bool GraphState::is_join(const Record& record, const std::vector<VarInfo*>& members) {
  const NodeInfo& node = *record.node;
  if (!has_many_outputs(node)) return false;
  bool found = false;
  for_each_other_use(node, record.input, members, [&](const UseSlot& slot) {
    node.for_each_edge_from(slot.index, [&](const AliasEdge&) { found = true; });
  });
  return found;
}

void GraphState::compute(Record& record) {
  NodeInfo& node = *record.node;
  VarInfo& destroyed = *node.slots[static_cast<std::size_t>(record.input)].var;
  // A node that passes an input on without reading it is not among its readers: beyond an earlier
  // writer only the walk itself finds it.
  const bool may_stop = node.reads_all && !has_many_outputs(node);
  if (may_stop) extend_run(destroyed);
  Walk found = walk(node, destroyed, record.written, may_stop);
  const bool was_join = record.is_join;
  record.is_join = is_join(record, found.members);
  take(record, std::move(found));
  if (record.trusts_choices && has_set_aside(node)) {
    clear(record);
    take(record, walk_through(node, destroyed, record.written, may_stop && n_joins_ == 0, false));
  }
  if (record.is_join != was_join) add_joins(record.is_join ? 1 : -1);
}

bool GraphState::has_set_aside(const NodeInfo& node) const {
  return !aside_.empty() && std::any_of(node.before.begin(), node.before.end(),
                                        [](const auto& item) { return item.second.is_aside; });
}

void GraphState::take(Record& record, Walk found) {
  NodeInfo& node = *record.node;
  record.trusts_choices = found.trusts_choices;
  record.tops = std::move(found.tops);
  PointerSet<VarInfo> seen;
  for (auto& [v, entry] : found.visits) {
    entry.record = &record;
    v->entries.push_back(std::move(entry));
    seen.insert(v);
  }
  record.seen.assign(seen.begin(), seen.end());
  std::tie(record.fault, record.culprit) = fault_of(node, node.apply, record.input, found.members);
  if (record.fault != InconsistencyKind::none) faulty_.insert(&record);
  for (VarInfo* m : found.members) {
    for_each_reader(*m, [&](const UseSlot& slot) {
      if (slot.node != &node && slot.node->is_declared) ++record.support[slot.node];
    });
  }
  const bool writes_any = !found.members.empty();  // false: the written regions are empty
  record.members = std::move(found.members);
  record.runs = std::move(found.runs);
  for (Run* run : record.runs) run->passed.insert(&record);
  // The latest reader first: once the node is behind it, the others agree with the order.
  std::vector<std::pair<NodeInfo*, int>> readers(record.support.begin(), record.support.end());
  std::sort(readers.begin(), readers.end(),
            [](const auto& a, const auto& b) { return a.first->label > b.first->label; });
  for (const auto& [reader, count] : readers) add_support(*reader, node, count);
  record.is_last = writes_any && std::any_of(record.tops.begin(), record.tops.end(),
                                             [](const Top& top) { return top.var->is_last; });
  if (record.is_last) add_support(*barrier_, node, 1);
}

void GraphState::support(Record& record, NodeInfo& reader, int count) {
  int& total = record.support[&reader];
  total += count;
  if (total == 0) record.support.erase(&reader);
  add_support(reader, *record.node, count);
}

// -- constraints -----------------------------------------------------------------------------

void GraphState::add_support(NodeInfo& before, NodeInfo& after, int count) {
  const auto [constraint, is_new] = after.before.try_emplace(&before);
  constraint->support += count;
  if (is_new) {
    constraint->is_aside = true;
    try_insert(before, after);
  } else if (constraint->support == 0) {
    if (constraint->is_aside) aside_.erase({&before, &after});
    before.after.erase(&after);
    after.before.erase(&before);
    edge_gone_ = true;
  }
}

void GraphState::try_insert(NodeInfo& before, NodeInfo& after) {
  if (!order_.make_before(before, after)) {
    aside_.emplace(&before, &after);
    doubtful_.insert(&after);
    return;
  }
  aside_.erase({&before, &after});
  after.before.find(&before)->is_aside = false;
  before.after.insert(&after);
}

void GraphState::set_aside(NodeInfo& before, NodeInfo& after) {
  after.before.find(&before)->is_aside = true;
  before.after.erase(&after);
  aside_.emplace(&before, &after);
  doubtful_.insert(&after);
}

std::vector<std::pair<NodeInfo*, NodeInfo*>> GraphState::constraints() const {
  std::vector<std::pair<NodeInfo*, NodeInfo*>> list;
  for (const auto& [key, node] : nodes_) {
    for (const auto& [before, constraint] : node->before) list.emplace_back(before, node.get());
  }
  if (!barrier_) return list;
  for (const auto& [before, constraint] : barrier_->before) {
    list.emplace_back(before, barrier_.get());
  }
  return list;
}

void GraphState::set_extra(std::vector<std::pair<NodeInfo*, NodeInfo*>> constraints) {
  if (constraints == extra_) return;
  for (const auto& [before, after] : extra_) add_support(*before, *after, -1);
  extra_ = std::move(constraints);
  for (const auto& [before, after] : extra_) add_support(*before, *after, 1);
}

// -- changes ---------------------------------------------------------------------------------

// Adds the effects of a use on the records around it, after its node has declared itself.
void GraphState::raise(UseSlot& slot) {
  if (!slot.var) return;
  VarInfo& v = *slot.var;
  NodeInfo* const node = slot.node;
  end_run(v);
  v.many_uses.reset();
  if (!node) {
    if (v.n_outputs == 1) queue_all_at(v, true);
    return;
  }
  if (!node->is_declared) return;  // not declared yet
  queue_those_at(*node, slot);
  std::vector<Record*> changed;
  node->for_each_edge_from(slot.index, [&](const AliasEdge& e) {
    queue_all_at(node->outs[static_cast<std::size_t>(e.out)], false);
    for (const Entry& entry : v.entries) {
      if (!entry.is_member || entry.record->node == node) continue;
      const Top& top = entry.record->tops[entry.top];
      const Region shown = e.map.within(entry.map, top.var->type());
      if (meets_any(top.written, shown, top.var->type())) changed.push_back(entry.record);
    }
  });
  for (Record* record : changed) queue(*record);
  if (node->edges.size() > 1) uncounted_.insert(node);
  if (!slot.reads) return;
  for (const Entry& e : v.entries) {
    if (e.is_member && e.is_first && e.record->node != node) support(*e.record, *node, 1);
  }
}

void GraphState::drop(UseSlot& slot) {
  if (!slot.var) return;
  VarInfo& v = *slot.var;
  NodeInfo* const node = slot.node;
  end_run(v);
  v.many_uses.reset();
  if (!node) {
    if (v.n_outputs == 1) queue_all_at(v, true);
    return;
  }
  if (!node->is_declared) return;
  queue_those_at(*node, slot);
  node->for_each_edge_from(slot.index, [&](const AliasEdge& e) {
    end_run(node->outs[static_cast<std::size_t>(e.out)]);
    queue_all_at(node->outs[static_cast<std::size_t>(e.out)], false);
  });
  if (!slot.reads) return;
  for (const Entry& e : v.entries) {
    if (e.is_member && e.is_first && e.record->node != node) support(*e.record, *node, -1);
  }
}

void GraphState::refresh() {
  while (!stale_.empty()) {
    NodeInfo* const node = *(stale_.end() - 1);
    stale_.erase(node);
    if (!node->in_graph) continue;
    undeclare(*node);
    declare(*node);
  }
  for (NodeInfo* node : uncounted_) count_joins(*node);
  uncounted_.clear();
  const auto compute_queued = [&] {
    while (!queue_.empty()) {
      Record* const record = queue_.back();
      queue_.pop_back();
      record->is_queued = false;
      compute(*record);
    }
  };
  compute_queued();
  while (!doubtful_.empty()) {
    NodeInfo* const node = *(doubtful_.end() - 1);
    doubtful_.erase(node);
    for (Record& record : node->records) {
      if (record.trusts_choices && has_set_aside(*node)) queue(record);
    }
    compute_queued();
  }
  if (!edge_gone_ || aside_.empty()) {
    edge_gone_ = false;
    return;
  }
  edge_gone_ = false;
  const auto again = aside_;
  for (const auto& [before, after] : again) try_insert(*before, *after);
}

}  // namespace palimpsest::graph_detail
