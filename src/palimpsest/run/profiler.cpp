// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/profiler.hpp"

#include <algorithm>

#include "palimpsest/plan/loop_plan.hpp"

namespace palimpsest {
namespace {

// The types that a plan was made for.
std::string signature_of(const Plan& plan) {
  std::string text;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const BufferKind kind = plan.buffers[b].kind;
    if (kind != BufferKind::argument && kind != BufferKind::container) continue;
    const auto slot = std::find_if(plan.slots.begin(), plan.slots.end(),
                                   [&](const Slot& s) { return s.buffer == static_cast<int>(b); });
    text += (text.empty() ? "" : ", ") + std::string(name_of(slot->layout.dtype)) +
            to_string(slot->layout.extents);
  }
  return "(" + text + ")";
}

// In the order in which they are measured.
void describe_steps(const Plan& plan, const std::string& inside_of,
                    std::vector<StepProfile>& steps) {
  for (const PlannedStep& step : plan.steps) {
    const Op& op = step.node.op();
    const std::string text = step.loop ? op.name() : op.str();
    steps.push_back({op.name(), inside_of + text, 0, step.new_bytes, step.in_place_bytes});
  }
  for (const PlannedStep& step : plan.steps) {
    if (!step.loop) continue;
    describe_steps(step.loop->body, inside_of + step.node.op().name() + " > ", steps);
  }
}

PlanProfile profile_of(const Plan& plan) {
  PlanProfile profile;
  profile.signature = signature_of(plan);
  describe_steps(plan, "", profile.steps);
  profile.peak_bytes = plan.peak_bytes;
  profile.arena_bytes = plan.arena_bytes;
  profile.output_bytes = plan.output_bytes;
  profile.entry_copy_bytes = plan.entry_copy_bytes;
  profile.lower_bound_bytes = plan.lower_bound_bytes;
  profile.no_reuse_bytes = plan.no_reuse_bytes;
  profile.saved_by_view_bytes = plan.saved_by_view_bytes;
  profile.saved_by_inplace_bytes = plan.saved_by_inplace_bytes;
  return profile;
}

}  // namespace

void Profiler::add_call(const Plan& plan, double seconds, double check_seconds,
                        std::span<const double> steps, index_t measured_peak_bytes) {
  const std::lock_guard guard(mutex_);
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& e) { return e.plan == &plan; });
  if (entry == entries_.end()) entry = entries_.insert(entry, Entry{&plan, profile_of(plan)});
  PlanProfile& profile = entry->profile;
  ++profile.calls;
  profile.seconds += seconds;
  profile.check_seconds += check_seconds;
  for (std::size_t i = 0; i < steps.size(); ++i) profile.steps[i].seconds += steps[i];
  profile.measured_peak_bytes = measured_peak_bytes;
}

std::vector<PlanProfile> Profiler::plans() const {
  const std::lock_guard guard(mutex_);
  std::vector<PlanProfile> result;
  for (const Entry& entry : entries_) result.push_back(entry.profile);
  return result;
}

CallMeasurement::CallMeasurement(Profiler& profiler, Device device) : profiler_(profiler) {
  if (profiler.measures_memory()) memory_.emplace(device);
}

std::span<double> CallMeasurement::steps(const Plan& plan) {
  steps_.assign(measured_steps(plan), 0.0);
  return steps_;
}

void CallMeasurement::finish(const Plan& plan, index_t held_bytes) {
  const double seconds = since_start_.seconds();
  const index_t peak = memory_ ? static_cast<index_t>(memory_->peak_bytes()) + held_bytes : -1;
  profiler_.add_call(plan, seconds - check_seconds_, check_seconds_, steps_, peak);
}

}  // namespace palimpsest
