// SPDX-License-Identifier: Apache-2.0
// Runs: the chains of partly overwritten values that a walk passes in one step. Without them the
// n-th of n writes into one array would be compared with all that were before it.
#include <algorithm>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest::graph_detail {
namespace {

// Fewer values are not worth a run.
constexpr std::size_t kShortest = 3;

// The one value from which v differs by its owner's writes, in the same memory. Null if there is
// none, if several values are involved, or if the owner wrote the whole value: there a walk ends.
VarInfo* written_over(const VarInfo& v) {
  if (!v.owner || v.index < 0) return nullptr;
  const AliasEdge* found = nullptr;
  bool is_one = true;
  v.owner->for_each_edge_to(v.index, [&](const AliasEdge& e) {
    is_one = is_one && !found && !e.is_hidden && e.is_write && e.map.is_whole();
    found = &e;
  });
  if (!found || !is_one || took_over(*found, *v.owner, Region::whole())) return nullptr;
  return &v.owner->parent(*found);
}

// True if the only reader of v makes the next such value from it.
bool is_between(const VarInfo& v) {
  if (v.n_uses != 1 || must_keep(v) != InconsistencyKind::none) return false;
  const UseSlot& slot = *v.first;
  if (!slot.node || !slot.node->is_declared || !slot.reads || !written_over(v)) return false;
  const AliasEdge* found = nullptr;
  int count = 0;
  slot.node->for_each_edge_from(slot.index, [&](const AliasEdge& e) {
    found = &e;
    ++count;
  });
  return count == 1 && written_over(slot.node->outs[static_cast<std::size_t>(found->out)]) == &v;
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

VarInfo& end_for(const NodeInfo& node, const Run& run) {
  for (const VarInfo& out : node.outs) {
    if (out.run == &run && &out != run.values.front()) return *written_over(out);
  }
  return *run.values.back();
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
    auto made = std::make_unique<Run>();
    run = made.get();
    runs_.try_emplace(run, std::move(made));
  }
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    (*it)->run = run;
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
