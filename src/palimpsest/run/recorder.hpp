// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "palimpsest/run/device_step.hpp"

namespace palimpsest {

/// A step with its views, bound for a call.
struct BoundStep {
  const StepExecutor* executor;
  std::span<const ConstView> inputs;
  std::span<const MutableView> outputs;
  std::span<std::byte> scratch;
};

/// Recordings of the launches of a frame. A call with the arguments of an earlier one is recorded,
/// and enqueued as one command from then on. Two are kept, since values may take turns in memory.
class Recorder {
 public:
  explicit Recorder(Device device) : device_(device) {}
  /// Enqueues the steps, which are all launches on the device, as one recording. False: the caller
  /// runs them.
  bool replay(std::span<const BoundStep> steps);
  /// False once the driver refused.
  bool is_of_use() const { return is_of_use_; }

 private:
  struct Seen {
    std::vector<std::int64_t> arguments;
    std::unique_ptr<Recording> recording;
  };

  Device device_;
  std::array<Seen, 2> seen_;
  std::size_t oldest_ = 0;
  bool is_of_use_ = true;
};

}  // namespace palimpsest
