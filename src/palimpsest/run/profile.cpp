// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/profile.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/tensor/checked_json.hpp"

namespace palimpsest {
namespace {

using io_detail::Json;

std::string time_table(const char* title, const std::map<std::string, double>& seconds) {
  std::vector<std::pair<std::string, double>> rows(seconds.begin(), seconds.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = fmt::format("{}\n", title);
  for (const auto& [name, time] : rows)
    text += fmt::format("  {:>10.3f} ms  {}\n", time * 1e3, name);
  return text;
}

Json json_of(const PlanProfile& plan) {
  Json steps = Json::array();
  for (const StepProfile& step : plan.steps) {
    steps.push_back({{"op", step.op},
                     {"seconds", step.seconds},
                     {"allocated_bytes", step.allocated_bytes},
                     {"in_place_bytes", step.in_place_bytes}});
  }
  return {{"signature", plan.signature},
          {"calls", plan.calls},
          {"seconds", plan.seconds},
          {"peak_bytes", plan.peak_bytes},
          {"arena_bytes", plan.arena_bytes},
          {"output_bytes", plan.output_bytes},
          {"entry_copy_bytes", plan.entry_copy_bytes},
          {"lower_bound_bytes", plan.lower_bound_bytes},
          {"no_reuse_bytes", plan.no_reuse_bytes},
          {"saved_by_view_bytes", plan.saved_by_view_bytes},
          {"saved_by_inplace_bytes", plan.saved_by_inplace_bytes},
          {"measured_peak_bytes", plan.measured_peak_bytes},
          {"steps", std::move(steps)}};
}

template <class Key>
std::map<std::string, double> sum_of_steps(const std::vector<PlanProfile>& plans, Key key) {
  std::map<std::string, double> sums;
  for (const PlanProfile& plan : plans) {
    for (const StepProfile& step : plan.steps) sums[key(step)] += step.seconds;
  }
  return sums;
}

}  // namespace

std::map<std::string, double> Profile::seconds_by_class() const {
  return sum_of_steps(plans, [](const StepProfile& step) { return step.op_class; });
}

std::map<std::string, double> Profile::seconds_by_op() const {
  return sum_of_steps(plans, [](const StepProfile& step) { return step.op; });
}

std::string Profile::summary() const {
  std::string text = fmt::format(
      "profile of {}\n{} calls in {:.3f} ms, of which {:.3f} ms in steps; compiled in {:.3f} ms\n",
      function.empty() ? "a function" : function, calls, call_seconds * 1e3, step_seconds * 1e3,
      compile_seconds * 1e3);
  if (check_seconds > 0) {
    text += fmt::format("beside them {:.3f} ms in checks\n", check_seconds * 1e3);
  }
  text += "rewrites\n";
  for (const RewriteProfile& r : rewrites) {
    text += fmt::format("  {:>10.3f} ms  {} at {}: {} applied, {} refused, validation {:.3f} ms\n",
                        r.seconds * 1e3, r.name, r.position, r.applied, r.refused,
                        r.validation_seconds * 1e3);
  }
  if (!refusals.empty()) text += "not in place\n";
  for (const InplaceRefusal& refusal : refusals) text += "  " + refusal.str() + "\n";
  text += time_table("classes", seconds_by_class());
  text += time_table("ops", seconds_by_op());
  for (const PlanProfile& plan : plans) {
    text += fmt::format("plan for {}: {} calls, {:.3f} ms\n", plan.signature, plan.calls,
                        plan.seconds * 1e3);
    text += fmt::format(
        "  peak {} bytes (arena {}, results {}), lower bound {}, without reuse {}, saved by views "
        "{} and in place {}\n",
        plan.peak_bytes, plan.arena_bytes, plan.output_bytes, plan.lower_bound_bytes,
        plan.no_reuse_bytes, plan.saved_by_view_bytes, plan.saved_by_inplace_bytes);
    if (plan.measured_peak_bytes >= 0) {
      text += fmt::format("  measured at the last call: {} bytes\n", plan.measured_peak_bytes);
    }
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const StepProfile& step = plan.steps[i];
      text += fmt::format("  step {:3} {:>10.3f} ms  {:>12} new bytes {:>12} in place  {}\n", i,
                          step.seconds * 1e3, step.allocated_bytes, step.in_place_bytes, step.op);
    }
  }
  return text;
}

std::string Profile::to_json() const {
  Json json = {{"function", function},           {"calls", calls},
               {"call_seconds", call_seconds},   {"step_seconds", step_seconds},
               {"check_seconds", check_seconds}, {"compile_seconds", compile_seconds}};
  json["rewrites"] = Json::array();
  for (const RewriteProfile& r : rewrites) {
    json["rewrites"].push_back({{"name", r.name},
                                {"position", r.position},
                                {"applied", r.applied},
                                {"refused", r.refused},
                                {"seconds", r.seconds},
                                {"validation_seconds", r.validation_seconds}});
  }
  json["refusals"] = Json::array();
  for (const InplaceRefusal& r : refusals) {
    json["refusals"].push_back({{"body", r.body},
                                {"node", r.node},
                                {"input", r.input},
                                {"variable", r.variable},
                                {"kind", std::string(name_of(r.kind))}});
  }
  json["plans"] = Json::array();
  for (const PlanProfile& plan : plans) json["plans"].push_back(json_of(plan));
  return io_detail::text_of_json(json, 2);
}

}  // namespace palimpsest
