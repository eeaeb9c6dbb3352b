// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>

#include "palimpsest/device/devices.hpp"

namespace palimpsest {

/// Memory of the host for one copy from or to a device.
///
/// Errors   OutOfMemory "for staging of"
class Staging {
 public:
  Staging(Device device, DeviceBackend& backend, std::size_t bytes);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  std::byte* data() { return data_; }
  /// Keeps the memory until the queue has run all that is enqueued now. Nobody waits for that, but
  /// where more than 128 MiB are kept so, until some of them are free.
  void give_back_later();

 private:
  DeviceBackend& backend_;
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace palimpsest
