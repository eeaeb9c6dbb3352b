// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/program.hpp"

#include <algorithm>
#include <unordered_set>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/graph/aliased_inputs.hpp"
#include "palimpsest/graph/graph_state.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

// Adds to `seen` the variables in whose memory v may lie, v included, and returns the new ones. For
// a variable in `seen` all of these are in `seen` too.
std::vector<Variable> add_memory_of(const FunctionGraph& graph, AliasedInputs& aliased,
                                    const Variable& v,
                                    std::unordered_set<const VariableNode*>& seen) {
  std::vector<Variable> found;
  if (seen.insert(v.node()).second) found.push_back(v);
  for (std::size_t next = 0; next < found.size(); ++next) {
    const Variable at = found[next];
    const Apply owner = at.owner();
    if (!owner.defined() || !graph.contains(owner)) continue;
    for (const int i : aliased.of(at)) {
      const Variable& input = owner.input(static_cast<std::size_t>(i));
      if (seen.insert(input.node()).second) found.push_back(input);
    }
  }
  return found;
}

}  // namespace

void Program::finish() {
  overwritten.clear();
  for (const Variable& v : graph.inputs()) overwritten.push_back(graph.state().is_overwritten(v));
  overwrites_any = std::find(overwritten.begin(), overwritten.end(), true) != overwritten.end();
  is_updated.clear();
  for (const ContainerSpec& spec : containers) is_updated.push_back(spec.is_updated);
  borrows_any = false;
  AliasedInputs aliased;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].borrow) continue;
    borrows_any = true;
    std::unordered_set<const VariableNode*> seen;
    for (const Variable& v : add_memory_of(graph, aliased, graph.outputs()[i], seen)) {
      const auto it = std::find(graph.inputs().begin(), graph.inputs().end(), v);
      const auto input = static_cast<std::size_t>(it - graph.inputs().begin());
      if (it == graph.inputs().end() || input < arguments.size()) continue;
      containers[input - arguments.size()].is_lent = true;
    }
  }
}

PlanCache::Entry Program::make_plan_for(std::vector<Layout> signature) const {
  PlanRequest request;
  request.graph = &graph;
  request.n_arguments = arguments.size();
  request.n_results = outputs.size();
  request.overwritten = overwritten;
  for (const ArgumentSpec& spec : arguments) request.argument_is_lent.push_back(spec.borrow);
  for (const OutOptions& out : outputs) {
    request.borrowed.push_back(out.borrow);
    request.follows.push_back(!out.return_internal_type);
  }
  request.updated = updated;
  request.budget = budget;
  request.effort = static_cast<double>(config->plan_effort_ms);
  request.places_joins = places_joins;
  request.keeps_bits = keeps_bits;
  request.threads = static_cast<int>(config->threads.value_or(pool_threads()));
  request.parallel_grain = config->parallel_grain;
  request.input_layouts = signature;
  PlanCache::Entry entry{std::move(signature),
                         with_checked_shapes([&] { return make_plan(request); })};
  if (inspection && entry.plan.run_time_extents.empty())
    inspection->planned(entry.plan, [&] { return make_plan(request); });
  if (!entry.plan.steps.empty()) {
    entry.plan.external_bytes += request.threads * static_cast<index_t>(kThreadScratchBytes);
  }
  note_places(entry);
  for (const InplaceRefusal& refusal : refusals) {
    entry.plan.refused_in_place.push_back(refusal.str());
  }
  return entry;
}

void Program::note_places(PlanCache::Entry& entry) const {
  const Plan& plan = entry.plan;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan.buffers[b];
    const int input = input_behind(buffer);
    if (input >= 0) entry.inputs.emplace_back(static_cast<int>(b), input);
    if (buffer.kind == BufferKind::constant) {
      entry.constants.emplace_back(static_cast<int>(b), buffer.index);
    }
    if (buffer.kind == BufferKind::output) entry.output_buffers.push_back(b);
  }
  for (std::size_t u = 0; u < plan.updates.size(); ++u) {
    const Slot& slot = plan.slots[static_cast<std::size_t>(plan.updates[u].slot)];
    const int input = input_behind(plan.buffers[static_cast<std::size_t>(slot.buffer)]);
    const bool stays = plan.updates[u].how == Handover::keep &&
                       slot.layout == entry.signature[static_cast<std::size_t>(input)];
    entry.stays.push_back(stays);
    if (!stays) entry.moving.push_back(u);
  }
}

const Stages& Program::staged() const {
  const ForkSection whole;
  std::call_once(stages->once, [&] { stages->made = make_stages(*this); });
  return *stages->made;
}

}  // namespace palimpsest
