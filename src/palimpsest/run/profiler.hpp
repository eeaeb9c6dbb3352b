// SPDX-License-Identifier: Apache-2.0
// Internal: measurements of a function for its Profile.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/stop_watch.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/run/profile.hpp"

namespace palimpsest {

/// Collects over all threads. Plans must outlive it.
class Profiler {
 public:
  explicit Profiler(bool measures_memory) : measures_memory_(measures_memory) {}
  bool measures_memory() const { return measures_memory_; }
  /// A call that has ended; `steps` are its seconds per step.
  void add_call(const Plan& plan, double seconds, double check_seconds,
                std::span<const double> steps, index_t measured_peak_bytes);
  /// All plans so far.
  std::vector<PlanProfile> plans() const;

 private:
  struct Entry {
    const Plan* plan;
    PlanProfile profile;
  };
  bool measures_memory_;
  mutable Mutex mutex_;
  std::vector<Entry> entries_;  // guarded by mutex_
};

/// A call under measurement: its time, and the device's allocations if the profiler wants them.
class CallMeasurement {
 public:
  CallMeasurement(Profiler& profiler, Device device);
  /// Seconds per step, to be added to.
  std::span<double> steps(const Plan& plan);
  /// From here to resume() time counts as that of checks, and not as the call's.
  void pause() { paused_ = StopWatch(); }
  void resume() { check_seconds_ += paused_.seconds(); }
  /// Ends a call that succeeded. `held_bytes`: bytes of its frame before the call.
  void finish(const Plan& plan, index_t held_bytes);

 private:
  Profiler& profiler_;
  StopWatch since_start_, paused_;
  double check_seconds_ = 0;
  std::vector<double> steps_;
  std::optional<MemoryScope> memory_;
};

}  // namespace palimpsest
