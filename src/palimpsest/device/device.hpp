// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

enum class DeviceType : std::uint8_t { cpu, cuda, opencl };

/// Device of memory. `cpu:0` is the host. `cpu:1`, ... are further host memory spaces with an
/// allocator each, so that code for several devices can be tested on any machine. `opencl:0`,
/// `cuda:0`, ... are accelerators.
struct Device {
  DeviceType type = DeviceType::cpu;
  std::int16_t index = 0;

  /// True for memory that the host reads and writes by its address.
  bool is_host() const { return type == DeviceType::cpu; }
  /// `cpu` (index 0), `cpu:1`, `opencl:0`, `cuda:0`; else ValueError.
  static Device parse(std::string_view text);
  std::string str() const;
  friend auto operator<=>(const Device&, const Device&) = default;
};

}  // namespace palimpsest
