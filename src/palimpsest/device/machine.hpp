// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/device/device.hpp"

namespace PALIMPSEST_API palimpsest {

/// The devices of this machine: cpu, then its accelerators.
///
/// Cost     the first call loads the drivers of accelerators
std::vector<Device> devices();

/// Facts about an accelerator, as its driver tells them.
struct AcceleratorFacts {
  std::string name, driver;
  std::uint64_t memory_bytes = 0;
  std::uint64_t largest_allocation = 0;  ///< bytes of one array at most
  bool has_float64 = false;
};
/// DeviceError if the device is not here, or is a memory space of the host.
AcceleratorFacts accelerator_facts(Device device);

/// The reason why no accelerator of a type is here, as DeviceErrors say it; empty if there is one.
std::string why_none(DeviceType type);

/// Waits until all work has ended that was enqueued on a device so far. Memory spaces of the host
/// have no work to wait for. DeviceError if the device is not here or lost.
void synchronize(Device device);

}  // namespace palimpsest
