// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/device/backend.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/plan/host_step.hpp"

namespace palimpsest {

/// Runs a step with operands on an accelerator.
///
/// Threads  const members may be called concurrently, by frames with memory of their own
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;
  /// The views have addresses of their devices. `compute` runs the op on views of the host.
  virtual void run(const Op& op, std::span<const ConstView> inputs,
                   std::span<const MutableView> outputs, std::span<std::byte> scratch,
                   const std::function<void(RunContext&)>& compute) const = 0;
  /// True for launches only, with nothing to wait for: add_launches() says which.
  virtual bool can_be_recorded() const { return false; }
  virtual void add_launches(std::span<const ConstView>, std::span<const MutableView>,
                            std::span<std::byte>, std::vector<RecordedLaunch>&) const {}
};

/// Logs a copy between devices, as config.log_device_transfers asks for.
void log_transfer(const std::string& what, const std::string& shape, std::size_t bytes, Device from,
                  Device to);

/// Null for a step whose operands the host can reach. Kernels are compiled now.
///
/// Errors  DeviceError "does not compile on"
std::shared_ptr<const StepExecutor> step_executor(const Plan& plan, const PlannedStep& step);

}  // namespace palimpsest
