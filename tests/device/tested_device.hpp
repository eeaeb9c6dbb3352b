// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

#include "palimpsest/device/device.hpp"

namespace palimpsest::testing {

/// The device whose kind is tested: that of PALIMPSEST_TEST_DEVICE, else opencl:0.
inline Device tested_device() {
  const char* const name = std::getenv("PALIMPSEST_TEST_DEVICE");
  return Device::parse(name == nullptr ? "opencl:0" : name);
}

}  // namespace palimpsest::testing
