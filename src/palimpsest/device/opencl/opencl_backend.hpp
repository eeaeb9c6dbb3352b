// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "palimpsest/device/backend.hpp"
#include "palimpsest/device/opencl/opencl_api.hpp"

namespace palimpsest::opencl {

/// The devices of all platforms, those that are no processors first. With none, `why` says so.
///
/// OpenCL has no addresses, so those of obtain() are address space of the host that is reserved and
/// that nobody can read. Launches and copies translate them to buffers and offsets.
std::vector<std::shared_ptr<DeviceBackend>> backends(const Api& api, std::string& why);

}  // namespace palimpsest::opencl
