// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/function_graph.hpp"

#include <algorithm>

#include "palimpsest/graph/graph_edit.hpp"

namespace palimpsest {

using graph_detail::NodeInfo;
using graph_detail::UseSlot;
using graph_detail::VarInfo;

FunctionGraph::FunctionGraph(std::vector<Variable> inputs, std::vector<Variable> outputs,
                             Options options)
    : impl_(std::make_unique<Impl>(*this, std::move(inputs), std::move(outputs), options)) {}

FunctionGraph::FunctionGraph(FunctionGraph&& other) noexcept : impl_(std::move(other.impl_)) {
  if (impl_) impl_->self = this;
}

FunctionGraph& FunctionGraph::operator=(FunctionGraph&& other) noexcept {
  impl_ = std::move(other.impl_);
  if (impl_) impl_->self = this;
  return *this;
}

FunctionGraph::~FunctionGraph() = default;

const std::vector<Variable>& FunctionGraph::inputs() const { return impl_->inputs; }
const std::vector<Variable>& FunctionGraph::outputs() const { return impl_->outputs; }
std::size_t FunctionGraph::node_count() const { return impl_->state.node_count(); }
const graph_detail::GraphState& FunctionGraph::state() const { return impl_->state; }

bool FunctionGraph::contains(const Apply& node) const {
  const NodeInfo* const info = impl_->state.find(node.node());
  return info && info->in_graph;
}

std::vector<Use> FunctionGraph::uses(const Variable& v) const {
  std::vector<Use> result;
  const VarInfo* const info = impl_->state.find(v);
  for (const UseSlot* slot = info ? info->first : nullptr; slot; slot = slot->next) {
    result.push_back(impl_->use_of(*slot));
  }
  return result;
}

std::size_t FunctionGraph::use_count(const Variable& v) const {
  const VarInfo* const info = impl_->state.find(v);
  return info ? info->n_uses : 0;
}

bool FunctionGraph::is_input(const Variable& v) const {
  const VarInfo* const info = impl_->state.find(v);
  return info && info->is_input;
}

bool FunctionGraph::is_output(const Variable& v) const {
  const VarInfo* const info = impl_->state.find(v);
  return info && info->n_outputs > 0;
}

bool FunctionGraph::is_protected(const Variable& v) const {
  const VarInfo* const info = impl_->state.find(v);
  return info && info->is_protected;
}

bool FunctionGraph::is_overwritten_last(const Variable& v) const {
  const VarInfo* const info = impl_->state.find(v);
  return info && info->is_last;
}

void FunctionGraph::protect(const Variable& v) { impl_->protect(v, true); }
void FunctionGraph::unprotect(const Variable& v) { impl_->protect(v, false); }
void FunctionGraph::overwrite_last(const Variable& v) { impl_->overwrite_last(v); }

void FunctionGraph::replace(const Variable& old, const Variable& with, std::string_view reason) {
  const std::pair<Variable, Variable> pair{old, with};
  impl_->replace({&pair, 1}, {}, reason, false);
}

void FunctionGraph::replace_all(Pairs pairs, std::string_view reason) {
  impl_->replace(pairs, {}, reason, false);
}

void FunctionGraph::replace_validate(const Variable& old, const Variable& with,
                                     std::string_view reason) {
  const std::pair<Variable, Variable> pair{old, with};
  impl_->replace({&pair, 1}, {}, reason, true);
}

void FunctionGraph::replace_all_validate(Pairs pairs, std::string_view reason) {
  impl_->replace(pairs, {}, reason, true);
}

void FunctionGraph::replace_all_validate_remove(Pairs pairs, std::span<const Apply> remove,
                                                std::string_view reason) {
  impl_->replace(pairs, remove, reason, true);
}

void FunctionGraph::redirect(const Use& use, const Variable& with, std::string_view reason) {
  impl_->redirect(use, with, reason);
}

void FunctionGraph::validate() const { impl_->validate(); }
Inconsistency FunctionGraph::check() const { return impl_->state.check(); }
bool FunctionGraph::consistent() const { return impl_->state.is_consistent(); }
FunctionGraph::Token FunctionGraph::checkpoint() { return impl_->checkpoint(); }
void FunctionGraph::revert(Token token) { impl_->revert(token); }
void FunctionGraph::release(Token token) { impl_->release(token); }
void FunctionGraph::commit() { impl_->commit(); }

void FunctionGraph::add_feature(std::shared_ptr<Feature> feature) {
  impl_->features.push_back(std::move(feature));
  impl_->refresh_orderings();
}

void FunctionGraph::remove_feature(const std::shared_ptr<Feature>& feature) {
  std::erase(impl_->features, feature);
  impl_->refresh_orderings();
}

void FunctionGraph::set_trace(std::function<void(const std::string&)> sink) {
  impl_->trace = std::move(sink);
}

std::vector<Apply> FunctionGraph::toposort() const {
  if (!consistent()) throw InconsistencyError(check());
  const std::vector<NodeInfo*> nodes = impl_->sorted();
  std::vector<Apply> order;
  order.reserve(nodes.size());
  for (const NodeInfo* node : nodes) order.push_back(node->apply);
  return order;
}

std::vector<std::pair<Apply, Apply>> FunctionGraph::order_constraints() const {
  const NodeInfo* const barrier = impl_->state.barrier();
  auto list = impl_->state.constraints();
  std::vector<NodeInfo*> can_fail, last;
  for (const auto& [before, after] : list) {
    if (after == barrier) can_fail.push_back(before);
    if (before == barrier) last.push_back(after);
  }
  if (barrier) {
    std::erase_if(list, [&](const auto& c) { return c.first == barrier || c.second == barrier; });
  }
  for (NodeInfo* before : can_fail) {
    for (NodeInfo* after : last) {
      if (before != after) list.emplace_back(before, after);
    }
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->position, a.second->position) <
           std::pair(b.first->position, b.second->position);
  });
  list.erase(std::unique(list.begin(), list.end()), list.end());
  std::vector<std::pair<Apply, Apply>> result;
  for (const auto& [before, after] : list) result.emplace_back(before->apply, after->apply);
  return result;
}

std::vector<Apply> FunctionGraph::destroyers(const Variable& v) const {
  const VarInfo* const start = impl_->state.find(v);
  if (!start) return {};
  const auto views = [](const VarInfo& var, auto&& f) {
    for (const UseSlot* slot = var.first; slot; slot = slot->next) {
      if (!slot->node) continue;
      slot->node->for_each_edge_from(slot->index, [&](const auto& e) {
        if (!e.is_write) f(slot->node->outs[static_cast<std::size_t>(e.out)]);
      });
    }
  };
  std::vector<const VarInfo*> open{start}, roots;
  PointerSet<const VarInfo> seen;
  seen.insert(start);
  while (!open.empty()) {
    const VarInfo* const top = open.back();
    open.pop_back();
    bool is_root = true;
    const auto visit = [&](const auto& e) {
      if (e.is_write || e.is_hidden) return;
      is_root = false;
      const VarInfo& parent = top->owner->parent(e);
      if (seen.insert(&parent)) open.push_back(&parent);
    };
    if (top->owner) top->owner->for_each_edge_to(top->index, visit);
    if (is_root) roots.push_back(top);
  }
  seen.clear();
  for (const VarInfo* root : roots) seen.insert(root);
  PointerSet<const NodeInfo> found;
  for (open = roots; !open.empty();) {
    const VarInfo* const top = open.back();
    open.pop_back();
    for (const UseSlot* slot = top->first; slot; slot = slot->next) {
      if (slot->node && slot->node->record_on(slot->index)) found.insert(slot->node);
    }
    views(*top, [&](const VarInfo& child) {
      if (seen.insert(&child)) open.push_back(&child);
    });
  }
  std::vector<const NodeInfo*> list(found.begin(), found.end());
  std::sort(list.begin(), list.end(), [](auto* a, auto* b) { return a->position < b->position; });
  std::vector<Apply> result;
  for (const NodeInfo* node : list) result.push_back(node->apply);
  return result;
}

bool FunctionGraph::has_destroyers(std::span<const Variable> variables) const {
  return std::any_of(variables.begin(), variables.end(),
                     [&](const Variable& v) { return !destroyers(v).empty(); });
}

std::size_t FunctionGraph::overwritten_count() const { return impl_->state.record_count(); }

std::string FunctionGraph::str() const {
  std::string text = "FunctionGraph(";
  const auto append = [&](const auto& self, const Variable& v, int depth) -> void {
    const Apply owner = v.owner();
    if (!owner.defined() || !contains(owner) || depth > 16) {
      text += v.str();
      return;
    }
    text += owner.op().name() + "(";
    for (std::size_t i = 0; i < owner.input_count(); ++i) {
      if (i > 0) text += ", ";
      self(self, owner.input(i), depth + 1);
    }
    text += ")";
    if (owner.output_count() > 1) text += "." + std::to_string(v.index());
  };
  for (std::size_t i = 0; i < outputs().size(); ++i) {
    if (i > 0) text += ", ";
    append(append, outputs()[i], 0);
  }
  return text + ")";
}

}  // namespace palimpsest
