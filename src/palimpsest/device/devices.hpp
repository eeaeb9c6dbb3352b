// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "palimpsest/device/backend.hpp"
#include "palimpsest/device/device.hpp"

// The accelerators of this machine.
namespace palimpsest {

/// The device that stands in for `device` where the host computes: itself, cpu for an accelerator.
inline Device host_of(Device device) { return device.is_host() ? device : Device{}; }

/// The backend of an accelerator, alive until the process ends. The first call for a type loads its
/// driver.
///
/// Errors   DeviceError: no driver, loader, device or index; in a child of fork() "forked"
DeviceBackend& backend_of(Device device);

/// The accelerators of one type, in the order of their indices. With none, `why` (may be null)
/// becomes the text that backend_of() would throw.
std::vector<Device> devices_here(DeviceType type, std::string* why = nullptr);

/// For tests: `device` is `backend` from now on.
void add_backend(Device device, std::shared_ptr<DeviceBackend> backend);

}  // namespace palimpsest
