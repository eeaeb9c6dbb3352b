// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/machine.hpp"

#include "palimpsest/device/devices.hpp"

namespace palimpsest {

std::vector<Device> devices() {
  std::vector<Device> all{Device{}};
  for (const DeviceType type : {DeviceType::opencl, DeviceType::cuda}) {
    const std::vector<Device> found = devices_here(type);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

AcceleratorFacts accelerator_facts(Device device) {
  const DeviceFacts& facts = backend_of(device).facts();
  return {facts.name, facts.driver, facts.memory_bytes, facts.largest_allocation,
          facts.has_float64};
}

std::string why_none(DeviceType type) {
  std::string why;
  if (!devices_here(type, &why).empty()) why.clear();
  return why;
}

void synchronize(Device device) {
  if (device.is_host()) return;
  DeviceBackend& backend = backend_of(device);
  backend.wait_on_host(backend.mark());
}

}  // namespace palimpsest
