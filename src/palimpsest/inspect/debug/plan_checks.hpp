// SPDX-License-Identifier: Apache-2.0
// Internal: checks of DebugMode on a plan, before and while it runs.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "palimpsest/inspect/debug/debug_message.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/guarded_memory.hpp"
#include "palimpsest/run/inspection.hpp"

namespace palimpsest {

/// BadPlan when two buffers of the arena share bytes while both live, when one lies outside of it,
/// when a step uses a buffer outside of its life, or when the sums do not add up.
void check_placement(const Plan& plan);

/// StochasticOrder naming the first line in which two plans differ.
void check_same_plan(const Plan& first, const Plan& other, int run);

/// The value that a variable of the plan must have; undefined when unknown.
using ExpectedValue = std::function<DebugValue(const Variable&)>;

/// Follows a plan while it runs: every step must meet the expected inputs and give the expected
/// results, bit for bit. Memory without an owner is poisoned. Bytes beside a destination of the
/// caller must stay as they are.
class PlanWatch final : public CallWatch {
 public:
  PlanWatch(const DebugOptions& options, const CallAccess& call, ExpectedValue expected);

  void before_step(const StepAccess& access) override;
  void after_step(const StepAccess& access) override;
  void after_hand_over(std::span<const Tensor> delivered) override;

 private:
  struct Kept;
  void check_destinations(const std::string& when) const;
  bool writes_destination(std::size_t step) const;
  void poison(std::size_t buffer);
  void poison_all();
  void check_borrowed() const;
  void keep_borrowed(std::span<const Tensor> delivered);
  [[noreturn]] void throw_changed(const StepAccess& access, std::size_t input,
                                  const DebugValue& now) const;
  bool is_computed(const Variable& v) const;
  StepContext context_of(const StepAccess& access) const;

  const DebugOptions& options_;
  const Program& program_;
  const Plan& plan_;
  Frame& frame_;
  std::span<const GuardedDestination> destinations_;
  ExpectedValue expected_;
  std::optional<StaleWatch> stale_;  // of a step that runs
  std::uint64_t allocations_ = 0;    // of this thread, before the step
  std::unordered_map<const ApplyNode*, std::size_t> step_of_;
  std::vector<bool> has_run_;       // per step: one that is not needed in a call does not run
  std::vector<bool> is_delivered_;  // per buffer: does a result or an update lie in it?
};

}  // namespace palimpsest
