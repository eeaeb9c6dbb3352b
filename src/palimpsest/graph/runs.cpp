// SPDX-License-Identifier: Apache-2.0
// Runs: the chains of partly overwritten values that a walk passes in one step. Without them the
// n-th of n writes into one array is compared with all that were before it: sets of 1,000 rows take
// 23 times as long to compile, and the time grows as n^2.2 in place of n^1.2 (bench/growth).
#include <algorithm>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest::graph_detail {
namespace {

// Fewer values are not worth a run.
constexpr std::size_t kShortest = 3;
// So many values are looked at for one where a walk up ends.
constexpr std::size_t kNear = 16;

// The edge by which v differs, by its owner's writes alone, from one value in the same memory. Null
// if there is none, if several values are involved, or if the owner wrote the whole value: there a
// walk ends.
const AliasEdge* write_to(const VarInfo& v) {
  if (!v.owner || v.index < 0) return nullptr;
  const AliasEdge* found = nullptr;
  bool is_one = true;
  v.owner->for_each_edge_to(v.index, [&](const AliasEdge& e) {
    is_one = is_one && !found && !e.is_hidden && e.is_write && e.map.is_whole();
    found = &e;
  });
  return found && is_one && !took_over(*found, *v.owner, Region::whole()) ? found : nullptr;
}

VarInfo* written_over(const VarInfo& v) {
  const AliasEdge* const edge = write_to(v);
  return edge ? &v.owner->parent(*edge) : nullptr;
}

// True if a node reads v here only, and makes the next such value from it.
bool makes_next(const UseSlot& slot, const VarInfo& v) {
  const auto& slots = slot.node->slots;
  if (std::ranges::count(slots, &v, &UseSlot::var) != 1) return false;
  const AliasEdge* found = nullptr;
  int count = 0;
  slot.node->for_each_edge_from(slot.index, [&](const AliasEdge& e) {
    found = &e;
    ++count;
  });
  return count == 1 && slot.reads &&
         written_over(slot.node->outs[static_cast<std::size_t>(found->out)]) == &v;
}

// True if the use overwrites nothing.
bool only_shows(const UseSlot& slot) {
  bool shows = slot.node->record_on(slot.index) == nullptr;
  slot.node->for_each_edge_from(slot.index, [&](const AliasEdge& e) { shows &= !e.is_write; });
  return shows;
}

// True if one node makes the next such value from v, and others at most read it or view it.
bool is_between(const VarInfo& v) {
  if (must_keep(v) != InconsistencyKind::none || !written_over(v)) return false;
  const NodeInfo* next = nullptr;
  for (const UseSlot* slot = v.first; slot; slot = slot->next) {
    if (!slot->node || !slot->node->is_declared) return false;
    if (only_shows(*slot)) continue;
    if (next || !makes_next(*slot, v)) return false;
    next = slot->node;
  }
  return next != nullptr;
}

void for_each_view(const VarInfo& v, auto&& f) {
  for (const UseSlot* slot = v.first; slot; slot = slot->next) {
    slot->node->for_each_edge_from(slot->index, [&](const AliasEdge& e) {
      if (!e.is_write) f(slot->node->outs[static_cast<std::size_t>(e.out)], e);
    });
  }
}

// True if every walk from below ends here. Then the way through the run is in the coordinates of
// this variable. A walk that passes an earlier writer instead of stopping there makes no region
// coarser.
bool is_base(const VarInfo& v) {
  if (!v.owner || v.index < 0) return true;
  bool is_end = true;
  v.owner->for_each_edge_to(v.index, [&](const AliasEdge& e) {
    is_end = is_end && took_over(e, *v.owner, Region::whole());
  });
  return is_end;
}

}  // namespace

VarInfo& lower_end(const NodeInfo& node, VarInfo& v) {
  std::size_t last = v.run->values.size() - 1;
  for (const VarInfo& out : node.outs) {
    if (out.run == v.run && out.place > 0) last = std::min(last, out.place - 1);
  }
  return last > v.place + 1 ? *v.run->values[last - 1] : v;
}

VarInfo& upper_end(VarInfo& v, const Region& region) {
  const Run& run = *v.run;
  if (run.views.empty()) return *run.values.front();
  for (std::size_t k = v.place, n = 0; k > 0 && n < kNear; --k, ++n) {
    VarInfo& value = *run.values[k];
    if (took_over(*write_to(value), *value.owner, region)) return value;
  }
  return *run.values.front();
}

// Collects the values above an overwritten value since the last run. Appends them to that run, or
// makes a run of them.
void GraphState::extend_run(const VarInfo& destroyed) {
  if (!makes_runs_) return;
  std::vector<VarInfo*> found;
  VarInfo* v = written_over(destroyed);
  for (; v && !v->run && is_between(*v); v = written_over(*v)) found.push_back(v);
  Run* run = v && !found.empty() ? v->run : nullptr;
  if (!run) {
    if (found.size() < kShortest || !is_base(*v)) return;
    auto made = std::make_unique<Run>(destroyed.type().rank());
    run = made.get();
    runs_.try_emplace(run, std::move(made));
  }
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    (*it)->run = run;
    (*it)->place = run->values.size();
    for_each_view(**it, [&](VarInfo& view, const AliasEdge& e) {
      run->views.add({&view, &e}, (*it)->place);
    });
    run->values.push_back(*it);
  }
}

void GraphState::end_run(VarInfo& v) {
  if (!v.run) return;
  Run& run = *v.run;
  for (VarInfo* value : run.values) value->run = nullptr;
  const std::vector<Record*> passed(run.passed.begin(), run.passed.end());
  for (Record* record : passed) queue(*record);
  runs_.erase(&run);
}

void GraphState::end_all_runs() {
  if (runs_.empty()) return;
  makes_runs_ = false;
  while (!runs_.empty()) end_run(*(*runs_.begin()).second->values.front());
  refresh();
  makes_runs_ = true;
}

}  // namespace palimpsest::graph_detail
