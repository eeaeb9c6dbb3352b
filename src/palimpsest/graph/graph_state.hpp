// SPDX-License-Identifier: Apache-2.0
// Internal.
// The structure behind a FunctionGraph and, kept up to date with it, the alias analysis.
//
// Invariants, outside of an edit
//  1. The uses of a variable are a list in order of arrival. A use that is taken out remembers its
//     neighbours, so that undoing in reverse order restores the list exactly.
//  2. The labels of the order list increase along every data edge and along every constraint that
//     is not set aside. A constraint is set aside only while it would close a cycle.
//  3. A Record that is not queued knows every variable that its walk saw, and each of these has an
//     Entry for it: a change near such a variable queues the record or extends it.
//  4. While some variable is to be overwritten last, every node that can fail supports the
//     constraint that it precedes the barrier, a node of the order that computes nothing, and every
//     record that reaches such a variable the one that its node comes after the barrier.
//  5. Every reader of a member, other than the record's node, supports the constraint that it
//     precedes that node.
//  6. A walk that comes to a value of a Run may go on at a later one. Its record then has no
//     entries between the two but for the views that meet the written region, and is one of the
//     run's `passed`. A change at a value of a run ends the run and queues these records.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/graph/fixed_array.hpp"
#include "palimpsest/graph/inconsistency.hpp"
#include "palimpsest/graph/many_uses.hpp"
#include "palimpsest/graph/op.hpp"

namespace palimpsest::graph_detail {

struct NodeInfo;
struct VarInfo;
struct Record;
struct Run;

/// Input `index` of a node, or output `index` of the graph when `node` is null.
struct UseSlot {
  VarInfo* var = nullptr;   // null while it is taken out
  VarInfo* last = nullptr;  // the variable that it used before
  UseSlot *prev = nullptr, *next = nullptr;
  NodeInfo* node = nullptr;
  int index = 0;
  bool reads = true;  // the op looks at its elements
};

/// A variable on the walk of a record.
struct Entry {
  Record* record = nullptr;
  std::size_t top = 0;           // where the walk came down from
  Region map = Region::whole();  // the part of that top that the variable shows
  bool is_member = false;        // its memory meets the written region
  bool is_first = false;         // of several ways to one member
};

struct VarInfo {
  VariableNode* v = nullptr;  // null: the hidden buffer that outputs of `owner` share
  NodeInfo* owner = nullptr;
  int index = 0;
  int n_outputs = 0;
  UseSlot *first = nullptr, *last = nullptr;
  std::size_t n_uses = 0;
  bool is_protected = false, is_input = false, is_last = false;
  Run* run = nullptr;
  std::size_t place = 0;  // in the run
  std::vector<Entry> entries;
  std::unique_ptr<ManyUses> many_uses = {};  // null: not known

  const TensorType& type() const;
  Variable handle() const;
};

/// A variable without owner, which is kept here.
struct RootInfo : VarInfo {
  Variable root;
};

/// An output that may lie in the memory of an input, or of a hidden buffer of the node.
struct AliasEdge {
  int out = 0, in = 0;
  bool is_hidden = false, is_write = false;
  Region map = Region::whole();
};

struct Constraint {
  int support = 0;
  bool is_aside = false;
};

/// A variable that is an alias of no other one within a walk, and the regions written of it.
struct Top {
  VarInfo* var = nullptr;
  std::vector<Region> written;
};

/// A chain of values, each the previous value with a part overwritten, as repeated `set_subtensor`
/// makes it. No value of it must be kept. A value is used by the node that overwrites it, by
/// readers, and by views, which may show the part that is overwritten. A walk finds nothing else
/// between two values: a reader of a value in between precedes the node that overwrites that value,
/// and so the makers of the values behind.
struct Run {
  explicit Run(std::size_t rank) : views(rank) {}
  std::vector<VarInfo*> values;
  ChildrenByPlace views;      // numbered as the values that they show
  PointerSet<Record> passed;  // those whose walks left out values
};

/// An overwritten input of a node, and the variables that share its memory.
struct Record {
  NodeInfo* node = nullptr;
  int input = 0;
  Region written = Region::whole();
  bool is_queued = false;
  bool is_last = false;         // its node comes after every node that can fail
  bool is_join = false;         // outputs of its node lie in overlapping inputs
  bool trusts_choices = false;  // as its walk
  std::vector<Top> tops;
  std::vector<VarInfo*> seen;
  std::vector<VarInfo*> members;
  std::vector<Run*> runs;  // those it passed
  PointerMap<NodeInfo, int> support;
  InconsistencyKind fault = InconsistencyKind::none;  // the gravest, by R1 and R3
  VarInfo* culprit = nullptr;
};

struct NodeInfo {
  Apply apply;
  std::uint64_t position = 0;  // of arrival; orders faults
  bool in_graph = false;
  bool can_fail = false;
  bool is_declared = false;
  FixedArray<UseSlot, 2> slots;
  FixedArray<VarInfo, 1> outs;
  // Declarations of the op.
  std::vector<VarInfo> hidden;
  std::vector<AliasEdge> edges;
  std::vector<int> edges_by_input, edges_by_output;  // positions of them, while they are many
  std::vector<Record> records;  // one for each overwritten input, in their order; they do not move
  bool reads_all = true;        // elements of all inputs
  int n_joins = 0, n_choices = 0;
  // The order list.
  std::uint64_t label = 0;
  NodeInfo *earlier = nullptr, *later = nullptr;
  // Constraints: this node after those, and before these.
  PointerMap<NodeInfo, Constraint> before;
  PointerSet<NodeInfo> after;  // without those set aside

  explicit NodeInfo(const Apply& applied = {})
      : apply(applied),
        slots(applied.defined() ? applied.input_count() : 0),
        outs(applied.defined() ? applied.output_count() : 0) {}
  VarInfo& parent(const AliasEdge& e) {
    const auto i = static_cast<std::size_t>(e.in);
    return e.is_hidden ? hidden[i] : *slots[i].var;
  }
  void set_edges(std::vector<AliasEdge> list);
  /// The edges from an input, and those to an output, in their order. Cost  O(log n) and those
  template <class F>
  void for_each_edge_from(int in, F&& f) const {
    for_each_edge(edges_by_input, in, &AliasEdge::in, [&](const AliasEdge& e) {
      if (!e.is_hidden) f(e);
    });
  }
  template <class F>
  void for_each_edge_to(int out, F&& f) const {
    for_each_edge(edges_by_output, out, &AliasEdge::out, f);
  }
  /// Null if the input is not overwritten.
  Record* record_on(int input);
  const Record* record_on(int input) const;

 private:
  template <class F>
  void for_each_edge(const std::vector<int>& sorted, int key, int AliasEdge::*end, F&& f) const {
    if (sorted.empty()) {
      for (const AliasEdge& e : edges) {
        if (e.*end == key) f(e);
      }
      return;
    }
    const auto edge = [&](int k) -> const AliasEdge& { return edges[static_cast<std::size_t>(k)]; };
    auto it = std::partition_point(sorted.begin(), sorted.end(),
                                   [&](int k) { return edge(k).*end < key; });
    for (; it != sorted.end() && edge(*it).*end == key; ++it) f(edge(*it));
  }
};

/// The reason why no node may overwrite the variable (R1); `none` if one may.
InconsistencyKind must_keep(const VarInfo& m);

/// True if the earlier writer that made this output overwrites the whole region.
bool took_over(const AliasEdge& e, const NodeInfo& writer, const Region& region);

/// Value further down in the run of v, to which a walk down for this node may jump: the last but
/// one on its way; v if there is none.
VarInfo& lower_end(const NodeInfo& node, VarInfo& v);

/// The value, further up in the run of v, to which a walk up with this region may pass: one where
/// the walk ends, if one is near, else the first.
VarInfo& upper_end(VarInfo& v, const Region& region);

/// The uses that read the variable, in their order.
template <class F>
void for_each_reader(VarInfo& v, F&& f) {
  if (const ManyUses* const many = many_uses(v)) {
    for (UseSlot* slot : many->readers()) f(*slot);
    return;
  }
  for (UseSlot* slot = v.first; slot; slot = slot->next) {
    if (slot->node && slot->reads) f(*slot);
  }
}

/// Result of a walk from an overwritten variable: the values and runs on its way.
struct Walk {
  std::vector<Top> tops;
  std::vector<std::pair<VarInfo*, Entry>> visits;
  std::vector<VarInfo*> members;
  std::vector<Run*> runs;
  /// Members may be values of choices that exist only after the node. There are none as long as no
  /// constraint of the node is set aside.
  bool trusts_choices = false;
};

/// The list of nodes in an order that obeys data edges and constraints. Labels compare as their
/// places do. After Pearce & Kelly 2006, doi:10.1145/1187436.1210590, searching from both ends at
/// once.
///
/// Cost  an edge that agrees with the order: O(1); else the smaller of both sides of the interval
///       between its ends is moved
class OrderList {
 public:
  void insert_before(NodeInfo& node, NodeInfo* place);  // null: at the end
  void remove(NodeInfo& node);
  /// Makes x precede y; false, and nothing moves, if y leads to x.
  bool make_before(NodeInfo& x, NodeInfo& y);
  /// A path from `from` to `to` along data edges and constraints; empty if there is none.
  std::vector<NodeInfo*> path(NodeInfo& from, NodeInfo& to) const;
  /// True if a path leads from `from` to one of these.
  bool leads_to(NodeInfo& from, std::span<NodeInfo* const> targets) const;

 private:
  void place(NodeInfo& node, NodeInfo* before);
  void relabel();
  NodeInfo *first_ = nullptr, *last_ = nullptr;
};

template <class F>
void for_each_successor(const NodeInfo& node, F&& f) {
  for (const VarInfo& out : node.outs) {
    for (const UseSlot* slot = out.first; slot; slot = slot->next) {
      if (slot->node) f(*slot->node);
    }
  }
  for (NodeInfo* n : node.after) f(*n);
}
template <class F>
void for_each_predecessor(const NodeInfo& node, F&& f) {
  for (const UseSlot& slot : node.slots) {
    if (slot.var && slot.var->owner) f(*slot.var->owner);
  }
  for (const auto& [before, constraint] : node.before) {
    if (!constraint.is_aside) f(*before);
  }
}

/// The number of refused edits, of those that are validated, and the seconds spent on validation.
struct EditCounts {
  std::size_t refused = 0;
  double validation_seconds = 0;
};

class GraphState {
 public:
  explicit GraphState(bool alias_regions) : alias_regions_(alias_regions) {}

  // -- structure -------------------------------------------------------------------------------
  NodeInfo* find(const ApplyNode* node) const;
  /// Null for a variable that the graph has never seen.
  VarInfo* find(const Variable& v) const;
  /// Makes an entry for a root that is new.
  VarInfo& need(const Variable& v);
  NodeInfo& create(const Apply& apply, std::uint64_t position, NodeInfo* place);
  void move_before(NodeInfo& node, NodeInfo* place);  // a node without uses
  void insert(NodeInfo& node);                        // into the graph, its uses not yet linked
  void erase(NodeInfo& node);                         // its uses taken out before
  void destroy(NodeInfo& node);                       // permanently
  void link(UseSlot& slot, VarInfo& v);               // as the last use. CycleError
  void relink(UseSlot& slot, VarInfo& v, UseSlot* prev, UseSlot* next);
  void unlink(UseSlot& slot);
  /// After the uses of a new node are linked.
  void declare(NodeInfo& node);
  void undeclare(NodeInfo& node);
  void set_protected(VarInfo& v, bool value);
  void set_overwritten_last(VarInfo& v, bool value);
  /// True if `is_so` holds for a node of the graph.
  template <class F>
  bool any_node(F&& is_so) const {
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& item) {
      return item.second->in_graph && is_so(item.second->apply);
    });
  }
  std::size_t node_count() const { return n_nodes_; }
  void forget_roots();

  // -- alias analysis --------------------------------------------------------------------------
  /// Brings everything up to date after changes.
  void refresh();
  void set_extra(std::vector<std::pair<NodeInfo*, NodeInfo*>> constraints);
  Walk walk(const NodeInfo& node, VarInfo& destroyed, const Region& written, bool may_stop) const;
  /// The tops at which such a walk turns round. It stops at earlier writers only where no writer
  /// joins inputs.
  std::vector<Top> tops_of(VarInfo& destroyed, const Region& written, bool may_stop) const;
  /// True if a node overwrites elements of the variable, as far as extents are known: it must not
  /// be protected then. Arrays without elements are not overwritten.
  bool is_overwritten(const Variable& v) const;
  /// True if the variable is known to show no element, by its type or as a part of another one.
  bool has_no_elements(const Variable& v) const;
  /// The gravest fault, by R1 and R3, of overwriting `input` of a node by `writer`: that node or
  /// its replacement.
  std::pair<InconsistencyKind, VarInfo*> fault_of(const NodeInfo& node, const Apply& writer,
                                                  int input,
                                                  const std::vector<VarInfo*>& members) const;
  /// Ends all runs, so that the reported fault depends on the graph alone.
  Inconsistency check();
  bool is_consistent() const { return faulty_.empty() && aside_.empty(); }
  /// Includes those of the barrier, which stands for no node of the user.
  std::vector<std::pair<NodeInfo*, NodeInfo*>> constraints() const;
  NodeInfo* barrier() const { return barrier_.get(); }
  std::size_t record_count() const { return records_.size(); }
  std::size_t run_count() const { return runs_.size(); }
  bool has_joins() const { return n_joins_ > 0; }
  bool regions_count() const { return alias_regions_; }
  const OrderList& order() const { return order_; }

  EditCounts edits;

 private:
  void raise(UseSlot& slot);
  void drop(UseSlot& slot);
  void take_out(UseSlot& slot);
  void after_link(UseSlot& slot);
  void keep_data_order(UseSlot& slot);
  void read_declarations(NodeInfo& node);
  void count_joins(NodeInfo& node);
  void add_joins(int n, int n_choices = 0);
  Walk walk_through(const NodeInfo& node, VarInfo& destroyed, const Region& written, bool may_stop,
                    bool trusts_choices) const;
  void queue_those_at(NodeInfo& node, const UseSlot& slot);
  static bool is_join(const Record& record, const std::vector<VarInfo*>& members);
  void queue(Record& record);
  void queue_all_at(VarInfo& v, bool members_only);
  void clear(Record& record);
  void compute(Record& record);
  void take(Record& record, Walk found);
  bool has_set_aside(const NodeInfo& node) const;
  void extend_run(const VarInfo& destroyed);
  void end_run(VarInfo& v);
  void end_all_runs();
  void support(Record& record, NodeInfo& reader, int count);
  void add_support(NodeInfo& before, NodeInfo& after, int count);
  void try_insert(NodeInfo& before, NodeInfo& after);
  void set_aside(NodeInfo& before, NodeInfo& after);
  Inconsistency gravest_record() const;
  Inconsistency hidden_fault() const;
  Inconsistency cycle_fault() const;
  Inconsistency transaction_fault() const;

  bool alias_regions_;
  PointerMap<const ApplyNode, std::unique_ptr<NodeInfo>> nodes_;
  PointerMap<const VariableNode, std::unique_ptr<RootInfo>> roots_;
  PointerSet<const VariableNode> idle_roots_;  // those that have lost their last use
  std::size_t n_nodes_ = 0;
  OrderList order_;
  std::unique_ptr<NodeInfo> barrier_;  // null: no variable is to be overwritten last
  int n_last_ = 0;
  std::vector<Record*> queue_;
  PointerSet<Record> records_, faulty_;
  std::set<std::pair<NodeInfo*, NodeInfo*>> aside_;
  std::vector<std::pair<NodeInfo*, NodeInfo*>> extra_;
  PointerMap<Run, std::unique_ptr<Run>> runs_;
  bool makes_runs_ = true;
  PointerSet<NodeInfo> stale_;      // declarations may depend on an input's type
  PointerSet<NodeInfo> uncounted_;  // their joins are to be counted
  PointerSet<NodeInfo> doubtful_;   // a constraint of theirs was set aside
  int n_joins_ = 0, n_choices_ = 0;
  bool edge_gone_ = false;
};

}  // namespace palimpsest::graph_detail
