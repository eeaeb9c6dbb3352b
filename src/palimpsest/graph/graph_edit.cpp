// SPDX-License-Identifier: Apache-2.0
// Edits with an undo log.
#include "palimpsest/graph/graph_edit.hpp"

#include <algorithm>
#include <chrono>

#include "palimpsest/base/config.hpp"
#include "palimpsest/graph/marks.hpp"
#include "palimpsest/graph/origin.hpp"

namespace palimpsest {

using graph_detail::NodeInfo;
using graph_detail::UseSlot;
using graph_detail::VarInfo;

FunctionGraph::Impl::Impl(const FunctionGraph& graph, std::vector<Variable> given_inputs,
                          std::vector<Variable> given_outputs, Options options)
    : self(&graph),
      state(options.alias_regions && config().alias_regions),
      inputs(std::move(given_inputs)),
      outputs(std::move(given_outputs)) {
  if (options.clone) {
    std::vector<Variable> copies;
    for (const Variable& v : inputs) {
      auto node = std::make_shared<VariableNode>();
      node->type = v.type();
      node->attachment = v.handle()->attachment;
      copy_marks(v, copies.emplace_back(std::move(node)));
    }
    outputs = clone_graph(outputs, inputs, copies);
    inputs = std::move(copies);
  }
  for (const Variable& v : inputs) state.need(v).is_input = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    import(outputs[i], nullptr, nullptr, "import");
    UseSlot& slot = output_slots_.emplace_back();
    slot.index = static_cast<int>(i);
    link(slot, outputs[i]);
  }
  finish();
}

// `<op> of <variable>` chains from a root to an output, for error texts.
std::string FunctionGraph::Impl::path_to_output(const Variable& root) const {
  std::string text = root.str();
  const VarInfo* v = state.find(root);
  for (int length = 0; length < 8 && v && v->first; ++length) {
    const UseSlot& use = *v->first;
    if (!use.node) return text + " -> output " + std::to_string(use.index);
    text += " -> " + use.node->apply.op().name();
    v = use.node->outs.data();
  }
  return text + " -> ...";
}

void FunctionGraph::Impl::check_root(const Variable& root) const {
  if (!root.is_root() || root.is_constant()) return;
  const VarInfo* const known = state.find(root);
  if (known && known->is_input) return;
  throw MissingInputError("[FunctionGraph] " + root.str() +
                          " is needed but is neither an input nor a constant: " +
                          path_to_output(root) + ". Try to add it to the inputs or to givens");
}

bool FunctionGraph::Impl::is_new(const Variable& v) const {
  const Apply owner = v.owner();
  if (!owner.defined()) return false;
  const NodeInfo* const node = state.find(owner.node());
  return !node || !node->in_graph;
}

// Adds the applications that v needs and the graph has not yet. Checks the roots first, so that a
// missing input changes nothing.
void FunctionGraph::Impl::import(const Variable& v, const VarInfo* old, NodeInfo* place,
                                 std::string_view reason) {
  check_root(v);
  struct Visit {
    Apply node;
    std::size_t next = 0;
  };
  std::vector<Apply> fresh;
  std::vector<Visit> stack;
  PointerSet<const ApplyNode> seen;
  const auto visit = [&](const Variable& variable) {
    check_root(variable);
    const VarInfo* const known = state.find(variable);
    if (known && (known->is_input || (known->owner && known->owner->in_graph))) return;
    Apply owner = variable.owner();
    if (owner.defined() && seen.insert(owner.node())) stack.push_back({std::move(owner)});
  };
  visit(v);
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.next < top.node.input_count()) {
      const Variable input = top.node.input(top.next++);
      visit(input);
    } else {
      fresh.push_back(top.node);
      stack.pop_back();
    }
  }
  for (const Apply& apply : fresh) {
    NodeInfo* node = state.find(apply.node());
    if (node) {
      state.move_before(*node, place);
    } else {
      node = &state.create(apply, next_position_, place);
      if (old) note_origin(apply, *old, reason);
      log_.push_back({.kind = Change::Kind::create, .node = node});
    }
    log_.push_back({.kind = Change::Kind::insert, .node = node, .position = node->position});
    node->position = next_position_++;
    state.insert(*node);
    for (UseSlot& slot : node->slots) {
      slot.last = nullptr;
      link(slot, apply.input(static_cast<std::size_t>(slot.index)));
    }
    state.declare(*node);
    log_.push_back({.kind = Change::Kind::declare, .node = node});
    for (const auto& f : features) f->on_import(*self, apply, reason);
  }
}

void FunctionGraph::Impl::link(UseSlot& slot, const Variable& v) {
  VarInfo& var = state.need(v);
  state.link(slot, var);
  if (!slot.node) outputs[static_cast<std::size_t>(slot.index)] = v;
  log_.push_back({.kind = Change::Kind::link, .slot = &slot});
}

void FunctionGraph::Impl::unlink(UseSlot& slot) {
  log_.push_back({.kind = Change::Kind::unlink,
                  .slot = &slot,
                  .var = slot.var,
                  .prev = slot.prev,
                  .next = slot.next});
  state.unlink(slot);
}

Use FunctionGraph::Impl::use_of(const UseSlot& slot) const {
  return {slot.node ? slot.node->apply : Apply(), slot.index};
}

void FunctionGraph::Impl::changed_input(const UseSlot& slot, const Variable& old,
                                        std::string_view reason) const {
  const Variable with = slot.var->handle();
  for (const auto& f : features) f->on_change_input(*self, use_of(slot), old, with, reason);
}

// A new node takes the place in the order of the node that it replaces. The replacement of a root
// goes before the root's first reader.
NodeInfo* FunctionGraph::Impl::place_for(const Redirection& r) const {
  if (r.old->owner) return r.old->owner;
  NodeInfo* place = nullptr;
  for (const UseSlot* slot : r.slots) {
    if (slot->node && (!place || slot->node->label < place->label)) place = slot->node;
  }
  return place;
}

void FunctionGraph::Impl::apply(std::vector<Redirection>& redirections, std::string_view reason) {
  for (const Redirection& r : redirections) {
    if (r.slots.empty()) continue;
    if (is_new(r.with)) pass_marks(r.old->handle(), r.with);
    import(r.with, r.old, place_for(r), reason);
  }
  for (const Redirection& r : redirections) {
    for (UseSlot* slot : r.slots) unlink(*slot);
  }
  for (const Redirection& r : redirections) {
    const Variable old = r.old->handle();
    for (UseSlot* slot : r.slots) {
      link(*slot, r.with);
      changed_input(*slot, old, reason);
    }
  }
  for (const Redirection& r : redirections) prune(*r.old, reason);
}

// Removes the application of an unused variable, and the nodes that only it used.
void FunctionGraph::Impl::prune(VarInfo& v, std::string_view reason) {
  std::vector<VarInfo*> candidates{&v};
  while (!candidates.empty()) {
    NodeInfo* const node = candidates.back()->owner;
    candidates.pop_back();
    if (!node || !node->in_graph) continue;
    const bool is_needed = std::any_of(node->outs.begin(), node->outs.end(),
                                       [](const VarInfo& out) { return out.n_uses > 0; });
    if (is_needed) continue;
    for (const auto& f : features) f->on_prune(*self, node->apply, reason);
    state.undeclare(*node);
    log_.push_back({.kind = Change::Kind::undeclare, .node = node});
    for (UseSlot& slot : node->slots) {
      candidates.push_back(slot.var);
      unlink(slot);
    }
    state.erase(*node);
    log_.push_back({.kind = Change::Kind::erase, .node = node});
  }
}

void FunctionGraph::Impl::undo(const Change& change, std::string_view reason) {
  switch (change.kind) {
    case Change::Kind::create:
      state.destroy(*change.node);
      return;
    case Change::Kind::insert:
      state.erase(*change.node);
      next_position_ = change.node->position;
      change.node->position = change.position;
      return;
    case Change::Kind::declare:
      for (const auto& f : features) f->on_prune(*self, change.node->apply, reason);
      state.undeclare(*change.node);
      return;
    case Change::Kind::undeclare:
      state.declare(*change.node);
      for (const auto& f : features) f->on_import(*self, change.node->apply, reason);
      return;
    case Change::Kind::erase:
      state.insert(*change.node);
      return;
    case Change::Kind::link:
      state.unlink(*change.slot);
      return;
    case Change::Kind::unlink: {
      const VarInfo* const now = change.slot->last;
      state.relink(*change.slot, *change.var, change.prev, change.next);
      if (!change.slot->node) {
        outputs[static_cast<std::size_t>(change.slot->index)] = change.var->handle();
      }
      if (now != change.var) changed_input(*change.slot, now->handle(), reason);
      return;
    }
    case Change::Kind::protect:
      state.set_protected(*change.var, change.value);
      return;
    case Change::Kind::last:
      state.set_overwritten_last(*change.var, false);
      return;
  }
}

void FunctionGraph::Impl::roll_back(std::size_t size, std::string_view reason) {
  state.set_extra({});
  while (log_.size() > size) {
    const Change change = log_.back();
    log_.pop_back();
    undo(change, reason);
  }
  update_orderings();
  state.refresh();
}

void FunctionGraph::Impl::update_orderings() {
  if (features.empty()) return;
  std::vector<std::pair<NodeInfo*, NodeInfo*>> list;
  for (const auto& f : features) {
    for (const auto& [first, second] : f->orderings(*self)) {
      NodeInfo *const before = state.find(first.node()), *const after = state.find(second.node());
      if (before && after && before->in_graph && after->in_graph) list.emplace_back(before, after);
    }
  }
  state.set_extra(std::move(list));
}

// Nodes that were removed live on while a mark may bring them back.
void FunctionGraph::Impl::finish() {
  update_orderings();
  state.refresh();
  if (!marks_.empty()) return;
  PointerSet<NodeInfo> gone;
  for (const Change& change : log_) {
    if (change.kind == Change::Kind::erase && !change.node->in_graph) gone.insert(change.node);
  }
  log_.clear();
  for (NodeInfo* node : gone) state.destroy(*node);
  state.forget_roots();
}

namespace {

// An output of the node with a use; the first one if none has.
Variable used_output(const graph_detail::NodeInfo& node) {
  const auto used = std::find_if(node.outs.begin(), node.outs.end(),
                                 [](const auto& out) { return out.n_uses > 0; });
  return (used == node.outs.end() ? node.outs.begin() : used)->handle();
}

}  // namespace

void FunctionGraph::Impl::transact(std::vector<Redirection>& redirections,
                                   std::span<const Apply> remove, std::string_view reason,
                                   bool validated) {
  using Clock = std::chrono::steady_clock;
  const std::size_t begin = log_.size();
  Clock::time_point start;
  const auto count_time = [&] {
    if (!validated) return;
    const std::chrono::duration<double> time = Clock::now() - start;
    state.edits.validation_seconds += time.count();
  };
  try {
    apply(redirections, reason);
    if (validated) start = Clock::now();
    update_orderings();
    state.refresh();
    for (const Apply& node : remove) {
      const NodeInfo* const info = state.find(node.node());
      if (info && info->in_graph) {
        throw ReplaceError("[replace] " + node.op().name() + " is to be removed but its result " +
                           used_output(*info).str() + " is still used");
      }
    }
    if (validated) {
      try {
        validate();
      } catch (const InconsistencyError&) {
        ++state.edits.refused;
        count_time();
        throw;
      }
      count_time();
    }
  } catch (...) {
    roll_back(begin, reason);
    throw;
  }
  finish();
}

// Sets the origin of a new node: the place where the user built the node that it replaces, if
// known; else its own. Names the rewrite that introduced it. Nodes of one origin share one text.
void FunctionGraph::Impl::note_origin(const Apply& fresh, const VarInfo& old,
                                      std::string_view reason) {
  auto& built_at = fresh.node()->built_at;
  const bool is_known = old.owner && old.owner->apply.node()->built_at;
  if (is_known) built_at = old.owner->apply.node()->built_at;
  if (old.owner) pass_origin(old.owner->apply, fresh);
  if (reason.empty() || (built_at && built_at->rewrite() == reason)) return;
  if (!origin_.text || origin_.calls != built_at || origin_.text->rewrite() != reason) {
    const StackTrace calls = built_at ? *built_at : StackTrace();
    origin_ = {built_at,
               std::make_shared<const StackTrace>(calls.introduced_by(std::string(reason)))};
  }
  built_at = origin_.text;
}

void FunctionGraph::Impl::replace(Pairs pairs, std::span<const Apply> remove,
                                  std::string_view reason, bool validated) {
  std::vector<Redirection> redirections;
  PointerSet<const UseSlot> taken;
  const auto name = [](const Variable& v) {
    const Apply owner = v.owner();
    return v.str() + (owner.defined() ? " of " + owner.op().name() : "");
  };
  for (const auto& [old, with] : pairs) {
    if (!old.type().is_super(with.type())) {
      throw TypeError("[replace] " + old.str() + " is " + old.type().str() + ", but " + with.str() +
                      " is " + with.type().str());
    }
    VarInfo* const v = state.find(old);
    if (!v || (v->owner && !v->owner->in_graph)) {
      throw ValueError("[replace] " + name(old) + " is not in the graph");
    }
    if (trace) trace("rewrite " + std::string(reason) + ": " + name(old) + " -> " + name(with));
    if (old == with) continue;
    Redirection& r = redirections.emplace_back(Redirection{v, with, {}});
    for (UseSlot* slot = v->first; slot; slot = slot->next) {
      if (pairs.size() == 1 || taken.insert(slot)) r.slots.push_back(slot);
    }
  }
  try {
    transact(redirections, remove, reason, validated);
  } catch (const Error& e) {
    if (trace) {
      const auto* fault = dynamic_cast<const InconsistencyError*>(&e);
      const bool is_named = fault && fault->node().defined();
      trace("rewrite " + std::string(reason) + ": refused at " +
            (is_named ? fault->node().op().name() : name(pairs.front().first)) + ": " + e.what());
    }
    throw;
  }
}

void FunctionGraph::Impl::redirect(const Use& use, const Variable& with, std::string_view reason) {
  const auto index = static_cast<std::size_t>(use.index);
  UseSlot* slot = nullptr;
  if (!use.node.defined()) {
    if (index < output_slots_.size()) slot = &output_slots_[index];
  } else if (NodeInfo* node = state.find(use.node.node()); node && node->in_graph) {
    if (index < node->slots.size()) slot = &node->slots[index];
  }
  if (!slot) throw ValueError("[redirect] no such use in the graph");
  const Variable old = slot->var->handle();
  if (!old.type().is_super(with.type())) {
    throw TypeError("[redirect] " + old.str() + " is " + old.type().str() + ", but " + with.str() +
                    " is " + with.type().str());
  }
  if (old == with) return;
  std::vector<Redirection> one{{slot->var, with, {slot}}};
  transact(one, {}, reason, false);
}

void FunctionGraph::Impl::protect(const Variable& v, bool value) {
  if (!v.is_root() && !state.find(v)) {
    throw ValueError("[protect] " + v.str() + " is not in the graph");
  }
  VarInfo& info = state.need(v);
  if (info.is_protected == value) return;
  log_.push_back({.kind = Change::Kind::protect, .var = &info, .value = info.is_protected});
  state.set_protected(info, value);
  finish();
}

void FunctionGraph::Impl::overwrite_last(const Variable& v) {
  VarInfo* const info = state.find(v);
  if (!info || !info->is_input) {
    throw ValueError("[overwrite_last] got " + v.str() + ", expected an input of the graph");
  }
  if (info->is_last) return;
  log_.push_back({.kind = Change::Kind::last, .var = info});
  state.set_overwritten_last(*info, true);
  finish();
}

void FunctionGraph::Impl::validate() {
  if (Inconsistency fault = state.check()) throw InconsistencyError(std::move(fault));
  for (const auto& f : features) f->on_validate(*self);
}

FunctionGraph::Token FunctionGraph::Impl::checkpoint() {
  marks_.push_back({++last_token_, log_.size()});
  return last_token_;
}

std::vector<FunctionGraph::Impl::Mark>::iterator FunctionGraph::Impl::find_mark(Token token) {
  return std::find_if(marks_.begin(), marks_.end(),
                      [&](const Mark& mark) { return mark.token == token; });
}

void FunctionGraph::Impl::revert(Token token) {
  const auto mark = find_mark(token);
  if (mark == marks_.end()) {
    throw ValueError("[revert] the mark has ended: got token " + std::to_string(token) +
                     ", expected one that checkpoint() gave since the last commit(), and that no "
                     "revert() or release() has ended");
  }
  const std::size_t size = mark->size;
  marks_.erase(mark + 1, marks_.end());
  roll_back(size, "revert");
}

void FunctionGraph::Impl::release(Token token) {
  marks_.erase(find_mark(token), marks_.end());
  finish();
}

void FunctionGraph::Impl::commit() {
  marks_.clear();
  finish();
}

// Order of the nodes: depth first from the outputs, inputs in order, then the nodes that must
// precede. Values are computed just before their use, which keeps few of them alive.
std::vector<NodeInfo*> FunctionGraph::Impl::sorted() const {
  struct Visit {
    NodeInfo* node;
    std::size_t begin, next;  // positions in `waiting`
  };
  std::vector<NodeInfo*> order, waiting;  // waiting: predecessors of each node on the stack
  std::vector<Visit> stack;
  PointerSet<const NodeInfo> seen;
  order.reserve(state.node_count());
  seen.reserve(state.node_count());
  const auto push = [&](NodeInfo* node) {
    if (!node || !seen.insert(node)) return;
    stack.push_back({node, waiting.size(), waiting.size()});
    for (const UseSlot& slot : node->slots) {
      if (slot.var->owner) waiting.push_back(slot.var->owner);
    }
    const auto n_data = static_cast<std::ptrdiff_t>(waiting.size());
    for (const auto& [before, constraint] : node->before) waiting.push_back(before);
    std::sort(waiting.begin() + n_data, waiting.end(),
              [](auto* a, auto* b) { return a->position < b->position; });
  };
  for (const UseSlot& output : output_slots_) {
    push(output.var->owner);
    while (!stack.empty()) {
      Visit& top = stack.back();
      // All predecessors of later nodes have been removed: the rest belongs to this node.
      if (top.next < waiting.size()) {
        push(waiting[top.next++]);
      } else {
        if (top.node != state.barrier()) order.push_back(top.node);
        waiting.resize(top.begin);
        stack.pop_back();
      }
    }
  }
  return order;
}

}  // namespace palimpsest
