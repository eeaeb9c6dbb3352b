// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "palimpsest/device/backend.hpp"
#include "palimpsest/device/cuda/cuda_api.hpp"

namespace palimpsest::cuda {

/// The devices of the driver. With none, `why` says so.
std::vector<std::shared_ptr<DeviceBackend>> backends(const Driver& driver, std::string& why);

/// Machine code of a text for `isa`, such as sm_90, by NVRTC. Needs no device.
///
/// Errors   DeviceError "does not compile on `device`", "no NVRTC"
std::vector<std::byte> compile(const KernelText& text, const std::string& isa,
                               const std::string& device);

}  // namespace palimpsest::cuda
