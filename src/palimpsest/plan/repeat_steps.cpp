// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/repeat_steps.hpp"

#include <algorithm>
#include <map>

#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/plan/part_places.hpp"
#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

struct Visits {
  std::vector<int> readers, writers;  // steps, rising
  bool is_condition = false;
};

std::vector<Visits> visits_of(const Plan& plan) {
  std::vector<Visits> visits(plan.buffers.size());
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    for (const BufferUse& use : uses_of(plan, plan.steps[at(i)])) {
      Visits& v = visits[at(use.buffer)];
      (use.writes ? v.writers : v.readers).push_back(i);
    }
  }
  for (const PlannedGuard& guard : plan.guards) {
    visits[at(plan.slots[at(guard.condition)].buffer)].is_condition = true;
  }
  return visits;
}

// A pass over memory, or less. Not the same as is_cheap(): that a result may be computed twice
// wherever this is convenient.
bool takes_one_pass(const Op& op) {
  return op.is_cheap() || dynamic_cast<const ops::Elementwise*>(&op) ||
         dynamic_cast<const ops::Alloc*>(&op);
}

// True if this step can be repeated as long as its inputs exist.
bool is_repeatable(const PlannedStep& step) {
  return takes_one_pass(step.node.op()) && step.outputs.size() == 1 && step.scratch < 0 &&
         !step.loop && step.guard < 0 && overwritten_inputs(step.node).empty();
}

// The first step after another one that uses a buffer; -1: none.
int first_after(const Visits& visits, int step) {
  int first = -1;
  for (const auto* const list : {&visits.readers, &visits.writers}) {
    const auto it = std::upper_bound(list->begin(), list->end(), step);
    if (it != list->end() && (first < 0 || *it < first)) first = *it;
  }
  return first;
}

}  // namespace

std::vector<Repetition> repetitions_at(const Plan& plan, const std::vector<bool>& is_kept,
                                       int full) {
  const std::vector<Visits> visits = visits_of(plan);
  std::vector<bool> has_parts(plan.buffers.size(), false);
  for (const BufferPart& part : plan.parts) has_parts[at(part.buffer)] = true;
  std::vector<Repetition> result;
  for (int b = 0; b < static_cast<int>(plan.buffers.size()); ++b) {
    const Visits& v = visits[at(b)];
    if (plan.buffers[at(b)].kind != BufferKind::arena || is_kept[at(b)] || has_parts[at(b)] ||
        v.is_condition || v.writers.empty()) {
      continue;
    }
    // Until it lies idle it is written once; afterwards it may be overwritten.
    const int writer = v.writers[0];
    const bool is_whole = v.writers.size() == 1 || v.writers[1] > full;
    const int late = first_after(v, full);
    const bool is_idle = writer < full && is_whole && late >= 0 &&
                         !std::binary_search(v.readers.begin(), v.readers.end(), full);
    if (!is_idle || !is_repeatable(plan.steps[at(writer)])) continue;
    // The inputs of the writer must be unchanged.
    const std::vector<int>& inputs = plan.steps[at(writer)].inputs;
    const bool is_intact = std::all_of(inputs.begin(), inputs.end(), [&](int slot) {
      const auto& writers = visits[at(plan.slots[at(slot)].buffer)].writers;
      return writers.empty() || writers.back() < writer;
    });
    if (is_intact) result.push_back({b, writer, late});
  }
  std::stable_sort(result.begin(), result.end(), [&](const Repetition& a, const Repetition& b) {
    return plan.buffers[at(a.buffer)].bytes > plan.buffers[at(b.buffer)].bytes;
  });
  return result;
}

Plan with_repeated(const Plan& plan, const Repetition& repetition) {
  Plan result = plan;
  const int copy = static_cast<int>(result.buffers.size());
  result.buffers.push_back(plan.buffers[at(repetition.buffer)]);
  std::map<int, int> moved;  // slots
  const auto in_copy = [&](int slot) {
    if (plan.slots[at(slot)].buffer != repetition.buffer) return slot;
    const auto [it, is_new] = moved.try_emplace(slot, static_cast<int>(result.slots.size()));
    if (is_new) {
      result.slots.push_back(plan.slots[at(slot)]);
      result.slots.back().buffer = copy;
    }
    return it->second;
  };
  for (std::size_t i = at(repetition.first_late); i < result.steps.size(); ++i) {
    for (int& slot : result.steps[i].inputs) slot = in_copy(slot);
    for (int& slot : result.steps[i].outputs) slot = in_copy(slot);
  }
  PlannedStep again = plan.steps[at(repetition.step)];
  again.is_repeated = true;
  again.outputs[0] = in_copy(again.outputs[0]);
  result.repeated_bytes += again.new_bytes;
  result.steps.insert(result.steps.begin() + repetition.first_late, std::move(again));
  return result;
}

}  // namespace palimpsest
