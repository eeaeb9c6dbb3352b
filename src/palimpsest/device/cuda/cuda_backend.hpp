// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "palimpsest/device/backend.hpp"

namespace palimpsest::cuda {

/// The devices of the driver. With none, `why` says so.
std::vector<std::shared_ptr<DeviceBackend>> backends(std::string& why);

}  // namespace palimpsest::cuda
