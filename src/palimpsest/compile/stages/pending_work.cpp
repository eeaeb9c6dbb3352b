// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/stages/pending_work.hpp"

#include <algorithm>
#include <utility>

#include "palimpsest/graph/inferred_shapes.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"
#include "palimpsest/plan/notes.hpp"

namespace palimpsest {
namespace {

const ops::IfElse* choice_of(const Apply& node) {
  return dynamic_cast<const ops::IfElse*>(&node.op());
}

}  // namespace

PendingWork::PendingWork(std::span<const Variable> inputs, std::span<const Variable> outputs) {
  for (const Variable& v : inputs) values_.try_emplace(v.node());
  for (const Apply& node : applications_of(outputs, inputs)) {
    const std::size_t number = steps_.size();
    Step& step = steps_.emplace_back(Step{.node = node});
    numbers_.try_emplace(node.node(), number);
    for (const Variable& v : node.inputs()) {
      if (v.is_constant()) continue;
      Value& value = at(v);
      ++value.n_reads;
      ++step.n_unknown;
      value.readers.push_back(number);
    }
    for (const Variable& v : node.outputs()) values_.try_emplace(v.node());
  }
  for (const Variable& v : outputs) {
    if (!v.is_constant()) ++at(v).n_reads;
  }
  std::vector<Known> known;
  for (std::size_t number = 0; number < steps_.size(); ++number) {
    if (steps_[number].n_unknown == 0) infer(number, known);
  }
  for (const auto& [v, extents] : known) know(v, extents);
}

Variable PendingWork::resolved(const Variable& v) const {
  const Variable* next = stands_for_.find(v.node());
  if (!next) return v;
  Variable end = *next;
  while ((next = stands_for_.find(end.node()))) end = *next;
  for (Variable at = v; at != end;) {  // later calls take one step
    Variable& shortcut = *stands_for_.find(at.node());
    at = std::exchange(shortcut, end);
  }
  return end;
}

int PendingWork::read_count(const Variable& v) const { return at(v).n_reads; }

const Extents* PendingWork::extents_of(const Variable& v) const {
  if (v.is_constant()) return &v.node()->value.shape();
  const std::optional<Extents>& extents = at(v).extents;
  return extents ? &*extents : nullptr;
}

// All extents of the inputs are known.
void PendingWork::infer(std::size_t number, std::vector<Known>& known) {
  Step& step = steps_[number];
  std::vector<Extents> inputs, outputs;
  for (const Variable& v : step.node.inputs()) inputs.push_back(*extents_of(v));
  try {
    step.is_undecided = ops::has_run_time_extents(step.node, inputs);
    if (!step.is_undecided) outputs = inferred_shapes(step.node, inputs);
  } catch (Error& error) {
    error.add_note(describe_node(step.node, inputs));
    if (!dynamic_cast<const ShapeError*>(&error)) throw;
    step.misfit = std::current_exception();
  }
  if (step.is_undecided || step.misfit) due_.push_back(number);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    known.emplace_back(step.node.output(k), std::move(outputs[k]));
  }
}

void PendingWork::know(const Variable& v, const Extents& extents) {
  std::vector<Known> open{{v, extents}};
  while (!open.empty()) {
    const auto [w, found] = std::move(open.back());
    open.pop_back();
    Value& value = at(w);
    if (value.extents) continue;
    value.extents = found;
    for (const Variable& choice : value.choices) open.emplace_back(choice, found);
    const Apply owner = w.owner();
    // A choice that is none any more needs both of its values.
    const bool is_choice = owner.defined() && w.index() == 0 && choice_of(owner);
    if (is_choice && step_of(owner).is_needed && !step_of(owner).is_done) need(owner.inputs());
    for (const std::size_t number : value.readers) {
      Step& step = steps_[number];
      if (step.is_done) continue;
      if (choice_of(step.node) && step.node.input(0) == w) due_.push_back(number);
      if (--step.n_unknown == 0) infer(number, open);
    }
  }
}

void PendingWork::need(std::span<const Variable> outputs) {
  std::vector<Variable> open(outputs.begin(), outputs.end());
  while (!open.empty()) {
    const Variable v = resolved(open.back());
    open.pop_back();
    if (v.is_constant() || std::exchange(at(v).is_needed, true)) continue;
    const Apply owner = v.owner();
    if (!owner.defined()) continue;
    const std::size_t number = *numbers_.find(owner.node());
    Step& step = steps_[number];
    if (step.is_done || std::exchange(step.is_needed, true)) continue;
    due_.push_back(number);
    const std::size_t n = is_open_choice(owner) ? 1 : owner.input_count();
    for (std::size_t i = 0; i < n; ++i) open.push_back(owner.input(i));
  }
}

bool PendingWork::is_open_choice(const Apply& node) const {
  return choice_of(node) && !at(node.output(0)).extents;
}

bool PendingWork::is_ready(const Step& step) const {
  if (is_open_choice(step.node)) return extents_of(step.node.input(0)) != nullptr;
  return step.is_undecided;
}

std::vector<Apply> PendingWork::next_decisions() {
  std::vector<std::size_t> due = std::exchange(due_, {});
  std::sort(due.begin(), due.end());
  due.erase(std::unique(due.begin(), due.end()), due.end());
  std::vector<Apply> decisions;
  for (const std::size_t number : due) {
    const Step& step = steps_[number];
    if (step.is_done || !step.is_needed) continue;
    if (step.misfit) std::rethrow_exception(step.misfit);
    if (is_ready(step)) decisions.push_back(step.node);
  }
  return decisions;
}

std::vector<Variable> PendingWork::choose(const Apply& node, std::span<const Variable> values) {
  step_of(node).is_done = true;
  std::vector<Variable> needed;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Variable choice = node.output(k), chosen = resolved(values[k]);
    stands_for_[choice.node()] = chosen;
    if (!chosen.is_constant()) at(chosen).n_reads += at(choice).n_reads;
    if (at(choice).is_needed) needed.push_back(chosen);
    if (const Extents* const extents = extents_of(chosen)) {
      know(choice, Extents(*extents));
    } else {
      at(chosen).choices.push_back(choice);
    }
  }
  std::vector<Variable> unread = finish({&node, 1});
  need(needed);
  return unread;
}

std::vector<Variable> PendingWork::finish(std::span<const Apply> nodes) {
  for (const Apply& node : nodes) step_of(node).is_done = true;
  std::vector<Variable> unread;
  std::vector<Apply> open(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const Apply node = open.back();
    open.pop_back();
    for (const Variable& raw : node.inputs()) {
      const Variable v = resolved(raw);
      if (v.is_constant() || --at(v).n_reads > 0) continue;
      unread.push_back(v);
      const Apply owner = v.owner();
      if (!owner.defined() || step_of(owner).is_done) continue;
      const std::vector<Variable> results = owner.outputs();
      const bool is_read = std::any_of(results.begin(), results.end(), [&](const Variable& result) {
        return at(result).n_reads > 0;
      });
      if (is_read) continue;
      step_of(owner).is_done = true;
      open.push_back(owner);
    }
  }
  return unread;
}

}  // namespace palimpsest
