// SPDX-License-Identifier: Apache-2.0
// Choice of the reported fault of an inconsistent graph: the gravest kind, then the node that
// arrived first. It depends on the graph alone, not on the edits that led to it.
#include <algorithm>
#include <optional>
#include <tuple>

#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest {

std::string_view name_of(InconsistencyKind kind) {
  static constexpr std::string_view kNames[] = {"none",
                                                "destroys_constant",
                                                "destroys_indestructible",
                                                "destroys_protected",
                                                "destroys_output",
                                                "input_aliasing",
                                                "multiple_destroyers",
                                                "ordering_cycle",
                                                "transaction",
                                                "refused_by_feature"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace graph_detail {
namespace {

std::string prefix(InconsistencyKind kind) {
  return "[validate] " + std::string(name_of(kind)) + ": ";
}

VarInfo& destroyed_by(const Record& record) {
  return *record.node->slots[static_cast<std::size_t>(record.input)].var;
}

// Adds advice for the user who wrote the destroying op.
Inconsistency with_advice(Inconsistency fault) {
  const OpPtr pure = fault.node.op().pure();
  const bool has_twin = pure && pure->destroy_map(fault.node).empty();
  const std::string twin = has_twin ? pure->name() : "an op that overwrites nothing";
  if (fault.kind == InconsistencyKind::destroys_protected) {
    fault.text +=
        "; " + fault.other.str() +
        " must keep its value, as an input that is not lent to a function. Try to lend it, "
        "In(" +
        fault.other.str() + ", {.is_mutable = true}), or " + twin;
  } else if (fault.kind == InconsistencyKind::destroys_constant) {
    fault.text += "; " + fault.other.str() + " is a constant. Try " + twin;
  }
  return fault;
}

Inconsistency describe(const Record& record, InconsistencyKind kind, const VarInfo& culprit) {
  const VarInfo& destroyed = destroyed_by(record);
  Inconsistency fault{kind, record.node->apply, destroyed.handle(), culprit.handle(), {}, {}, {}};
  fault.text = prefix(kind) + record.node->apply.op().name() + " destroys " + fault.variable.str();
  if (kind == InconsistencyKind::input_aliasing) {
    fault.text += ", but also reads " + fault.other.str() + ", which shares its memory";
  } else if (&destroyed != &culprit) {
    fault.text += ", whose memory " + fault.other.str() + " shares";
  }
  return with_advice(std::move(fault));
}

bool reads_any(const NodeInfo& node, const std::vector<VarInfo*>& members) {
  return std::any_of(node.slots.begin(), node.slots.end(), [&](const UseSlot& slot) {
    return slot.reads && std::find(members.begin(), members.end(), slot.var) != members.end();
  });
}

// The nodes between two labels, with all constraints as edges.
class CycleSearch {
 public:
  CycleSearch(const std::set<std::pair<NodeInfo*, NodeInfo*>>& aside, const NodeInfo* without) {
    NodeInfo* first = aside.begin()->second;
    std::uint64_t last = 0;
    for (const auto& [before, after] : aside) {
      if (after->label < first->label) first = after;
      last = std::max(last, before->label);
      aside_[before].push_back(after);
    }
    for (NodeInfo* n = first; n && n->label <= last; n = n->later) {
      if (n->in_graph && n != without) inside_.insert(n);
    }
    trim();
  }

  // The shortest cycle through the node that arrived first among those that lie on any.
  std::vector<NodeInfo*> cycle() const {
    for (NodeInfo* node : by_position({inside_.begin(), inside_.end()})) {
      std::vector<NodeInfo*> found = through(node);
      if (!found.empty()) return found;
    }
    return {};
  }

 private:
  static std::vector<NodeInfo*> by_position(std::vector<NodeInfo*> list) {
    std::sort(list.begin(), list.end(), [](auto* a, auto* b) { return a->position < b->position; });
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  std::vector<NodeInfo*> successors(const NodeInfo& node) const {
    std::vector<NodeInfo*> list;
    const auto add = [&](NodeInfo& n) {
      if (inside_.contains(&n)) list.push_back(&n);
    };
    for_each_successor(node, add);
    if (const auto* const aside = aside_.find(&node)) {
      for (NodeInfo* n : *aside) add(*n);
    }
    return by_position(std::move(list));
  }

  // Removes nodes without a predecessor inside until none is left: they lie on no cycle.
  void trim() {
    PointerMap<NodeInfo, int> n_before;
    for (NodeInfo* n : inside_) {
      for (NodeInfo* next : successors(*n)) ++n_before[next];
    }
    std::vector<NodeInfo*> open;
    for (NodeInfo* n : inside_) {
      if (!n_before.contains(n)) open.push_back(n);
    }
    while (!open.empty()) {
      NodeInfo* const n = open.back();
      open.pop_back();
      for (NodeInfo* next : successors(*n)) {
        if (--n_before[next] == 0) open.push_back(next);
      }
      inside_.erase(n);
    }
  }

  std::vector<NodeInfo*> through(NodeInfo* start) const {
    PointerMap<NodeInfo, NodeInfo*> reached_from;
    std::vector<NodeInfo*> open{start};
    for (std::size_t k = 0; k < open.size() && !reached_from.contains(start); ++k) {
      NodeInfo* const node = open[k];
      for (NodeInfo* next : successors(*node)) {
        if (reached_from.try_emplace(next, node).second) open.push_back(next);
      }
    }
    std::vector<NodeInfo*> found;
    if (!reached_from.contains(start)) return found;
    NodeInfo* n = start;
    do {
      found.push_back(n);
      n = *reached_from.find(n);
    } while (n != start);
    std::reverse(found.begin() + 1, found.end());
    return found;
  }

  PointerSet<NodeInfo> inside_;
  PointerMap<NodeInfo, std::vector<NodeInfo*>> aside_;
};

}  // namespace

Inconsistency GraphState::gravest_record() const {
  const auto rank = [](const Record* r) {
    return std::tuple(r->fault, r->node->position, r->input);
  };
  const Record* const worst = *std::min_element(
      faulty_.begin(), faulty_.end(), [&](auto* a, auto* b) { return rank(a) < rank(b); });
  return describe(*worst, worst->fault, *worst->culprit);
}

// Faults beyond an earlier writer, where the walks of records stop. Each of them makes a
// constraint of its node impossible to insert, so that only these nodes need looking at.
Inconsistency GraphState::hidden_fault() const {
  std::set<std::pair<std::uint64_t, NodeInfo*>> suspects;
  for (const auto& [before, after] : aside_) {
    if (!before->records.empty()) suspects.emplace(before->position, before);
  }
  for (const auto& [position, node] : suspects) {
    for (const Record& record : node->records) {
      const Walk full = walk(*node, destroyed_by(record), record.written, false);
      const auto [kind, culprit] = fault_of(*node, node->apply, record.input, full.members);
      if (kind != InconsistencyKind::none) return describe(record, kind, *culprit);
    }
  }
  std::optional<std::pair<std::uint64_t, std::uint64_t>> least;
  Inconsistency found;
  for (const auto& [position, node] : suspects) {
    for (const Record& record : node->records) {
      const Walk full = walk(*node, destroyed_by(record), record.written, false);
      PointerSet<NodeInfo> others;
      for (const VarInfo* m : full.members) {
        for (const UseSlot* slot = m->first; slot; slot = slot->next) {
          if (slot->node && slot->node != node && !slot->node->records.empty()) {
            others.insert(slot->node);
          }
        }
      }
      for (NodeInfo* other : others) {
        if (!reads_any(*other, full.members)) continue;
        for (const Record& second : other->records) {
          const Walk theirs = walk(*other, destroyed_by(second), second.written, false);
          if (!reads_any(*node, theirs.members)) continue;
          const bool swap = other->position < node->position;
          const NodeInfo &a = swap ? *other : *node, &b = swap ? *node : *other;
          const std::pair key{a.position, b.position};
          if (least && *least <= key) continue;
          least = key;
          const Record& first = swap ? second : record;
          found = {InconsistencyKind::multiple_destroyers,
                   a.apply,
                   destroyed_by(first).handle(),
                   {},
                   b.apply,
                   {},
                   prefix(InconsistencyKind::multiple_destroyers) + a.apply.op().name() + " and " +
                       b.apply.op().name() + " each overwrite an input of the other"};
        }
      }
    }
  }
  return found;
}

Inconsistency GraphState::cycle_fault() const {
  const std::vector<NodeInfo*> cycle = CycleSearch(aside_, barrier_.get()).cycle();
  if (cycle.empty()) return transaction_fault();
  Inconsistency fault;
  fault.kind = InconsistencyKind::ordering_cycle;
  fault.text = prefix(fault.kind);
  for (std::size_t k = 0; k < cycle.size() && !fault.node.defined(); ++k) {
    NodeInfo &reader = *cycle[k], &node = *cycle[(k + 1) % cycle.size()];
    if (!node.before.contains(&reader)) continue;
    for (const Record& record : node.records) {
      const Walk full = walk(node, destroyed_by(record), record.written, true);
      for (const VarInfo* m : full.members) {
        if (!m->v || !reads_any(reader, {const_cast<VarInfo*>(m)})) continue;
        fault.node = node.apply;
        fault.variable = destroyed_by(record).handle();
        fault.other = m->handle();
        fault.other_node = reader.apply;
        fault.text += node.apply.op().name() + " destroys " + fault.variable.str() + ", but " +
                      reader.apply.op().name() + " reads " + fault.other.str() + " after it;";
        break;
      }
      if (fault.node.defined()) break;
    }
  }
  fault.text += " each must precede the next:";
  for (const NodeInfo* n : cycle) {
    fault.cycle.push_back(n->apply);
    fault.text += " " + n->apply.op().name();
  }
  if (!fault.node.defined()) fault.node = fault.cycle.front();
  return fault;
}

// Every cycle that is left goes through the barrier.
Inconsistency GraphState::transaction_fault() const {
  std::vector<NodeInfo*> cycle = CycleSearch(aside_, nullptr).cycle();
  const auto it = std::find(cycle.begin(), cycle.end(), barrier_.get());
  if (it == cycle.end()) {
    throw InternalError("[validate] a constraint is set aside without a cycle");
  }
  std::rotate(cycle.begin(), it, cycle.end());
  const NodeInfo &node = *cycle[1], &failing = *cycle.back();
  Inconsistency fault{InconsistencyKind::transaction, node.apply, {}, {}, failing.apply, {}, {}};
  for (const Record& record : node.records) {
    if (!record.is_last || fault.variable.defined()) continue;
    fault.variable = destroyed_by(record).handle();
    for (const Top& top : record.tops) {
      if (top.var->is_last) fault.other = top.var->handle();
    }
  }
  fault.text = prefix(fault.kind) + node.apply.op().name() + " destroys " + fault.other.str() +
               ", which a failed run must leave as it was, and ";
  fault.text += &node == &failing ? "can fail halfway"
                                  : failing.apply.op().name() + ", which comes later, can fail";
  for (std::size_t k = 1; k < cycle.size(); ++k) fault.cycle.push_back(cycle[k]->apply);
  return fault;
}

Inconsistency GraphState::check() {
  if (!faulty_.empty()) return gravest_record();
  if (aside_.empty()) return {};
  end_all_runs();
  if (Inconsistency hidden = hidden_fault()) return hidden;
  return cycle_fault();
}

}  // namespace graph_detail
}  // namespace palimpsest
