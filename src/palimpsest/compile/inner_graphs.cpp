// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/inner_graphs.hpp"

#include <algorithm>
#include <unordered_set>

#include "palimpsest/graph/aliased_inputs.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"

namespace palimpsest {
namespace {

bool is_loop(const Apply& node) { return dynamic_cast<const ops::Loop*>(&node.op()) != nullptr; }

// True if the value lies, or may lie, in the memory of an input of the graph.
bool may_lie_in(AliasedInputs& aliased, const Variable& value, const Variable& memory) {
  std::vector<Variable> pending{value};
  std::unordered_set<const VariableNode*> seen;
  while (!pending.empty()) {
    const Variable v = pending.back();
    pending.pop_back();
    if (v == memory) return true;
    const Apply owner = v.owner();
    if (!owner.defined() || !seen.insert(v.node()).second) continue;
    for (const int i : aliased.of(v)) pending.push_back(owner.input(static_cast<std::size_t>(i)));
  }
  return false;
}

// The states of a loop whose memory the body may overwrite.
class StateMemory {
 public:
  explicit StateMemory(const ops::Loop& op) {
    const auto& parts = op.structure();
    std::size_t input = parts.reads.size();
    for (std::size_t k = 0; k < parts.states.size(); ++k) {
      if (parts.states[k].is_replaced()) states_.push_back({input, k});
      input += parts.states[k].inner.size();
    }
  }

  // Protects everything else, and says where new values had best lie.
  RewriteHints prepare(FunctionGraph& body) const {
    RewriteHints hints;
    for (const Variable& v : body.inputs()) body.protect(v);
    for (const auto& [input, result] : states_) {
      body.unprotect(body.inputs()[input]);
      hints.preferred_memory.emplace_back(body.outputs()[result], body.inputs()[input]);
    }
    return hints;
  }

  // Withdraws a state's memory unless only the step that computes its next value uses it. True if
  // one was withdrawn.
  bool withdraw_misused(const FunctionGraph& body) {
    AliasedInputs aliased;
    return std::erase_if(states_,
                         [&](const State& state) { return is_misused(body, aliased, state); }) > 0;
  }

 private:
  struct State {
    std::size_t input, result;  // of the body
  };

  static bool is_misused(const FunctionGraph& body, AliasedInputs& aliased, const State& state) {
    const Variable &memory = body.inputs()[state.input], &next = body.outputs()[state.result];
    const std::vector<Apply> writers = body.destroyers(memory);
    if (writers.empty()) return false;
    const std::vector<Apply> recurrence = applications_of({&next, 1});
    const bool is_needed = std::all_of(writers.begin(), writers.end(), [&](const Apply& writer) {
      return std::find(recurrence.begin(), recurrence.end(), writer) != recurrence.end();
    });
    if (!is_needed) return true;
    const auto& results = body.outputs();
    return !may_lie_in(aliased, next, memory) &&
           std::any_of(results.begin(), results.end(),
                       [&](const Variable& other) { return may_lie_in(aliased, other, memory); });
  }

  std::vector<State> states_;
};

void add_reports(const std::vector<RewriteProfile>& from, std::vector<RewriteProfile>& to) {
  for (const RewriteProfile& profile : from) {
    const auto known = std::find_if(to.begin(), to.end(), [&](const auto& r) {
      return r.name == profile.name && r.position == profile.position;
    });
    if (known == to.end()) {
      to.push_back(profile);
      continue;
    }
    known->applied += profile.applied;
    known->refused += profile.refused;
    known->seconds += profile.seconds;
    known->validation_seconds += profile.validation_seconds;
  }
}

FunctionGraph rewritten_body(const ops::Loop& op, const std::string& name,
                             const RewriteOptions& options, std::vector<RewriteProfile>* reports,
                             std::vector<InplaceRefusal>* refusals) {
  StateMemory memory(op);
  for (;;) {
    FunctionGraph body(op.body_inputs(), op.body_outputs());
    RewriteHints hints = memory.prepare(body);
    std::vector<RewriteProfile> made;
    std::vector<InplaceRefusal> refused;
    hints.refusals = &refused;
    ops::drop_unused_of_loops(body);
    rewrite_graph(body, hints, options, &made);
    rewrite_bodies(body, options, &made, &refused);
    if (memory.withdraw_misused(body)) continue;
    if (reports) add_reports(made, *reports);
    for (InplaceRefusal& refusal : refused) {
      if (!refusals) break;
      refusal.body = refusal.body.empty() ? name : name + "/" + refusal.body;
      refusals->push_back(std::move(refusal));
    }
    return body;
  }
}

}  // namespace

void rewrite_bodies(FunctionGraph& graph, const RewriteOptions& options,
                    std::vector<RewriteProfile>* reports, std::vector<InplaceRefusal>* refusals) {
  RewriteOptions of_body = options;
  of_body.selection.features.clear();
  int number = 0;
  for (const Apply& node : graph.toposort()) {
    if (!is_loop(node)) continue;
    const std::string name = "Loop " + std::to_string(number++);
    const auto& op = dynamic_cast<const ops::Loop&>(node.op());
    const FunctionGraph body = rewritten_body(op, name, of_body, reports, refusals);
    const Apply with = ops::with_body(node, body.inputs(), body.outputs());
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < with.output_count(); ++k) {
      pairs.emplace_back(node.output(k), with.output(k));
    }
    graph.replace_all(pairs, "rewrite_bodies");
    with.node()->built_at = node.node()->built_at;  // the same loop
  }
}

}  // namespace palimpsest
