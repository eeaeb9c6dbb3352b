// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/device.hpp"

#include <charconv>

#include "palimpsest/base/error.hpp"

namespace palimpsest {

Device Device::parse(std::string_view text) {
  const auto fail = [text] {
    return ValueError("[device] got '" + std::string(text) +
                      "', expected a name such as cpu, cpu:1, opencl:0 or cuda:0");
  };
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Device device;
  if (name == "cuda") {
    device.type = DeviceType::cuda;
  } else if (name == "opencl") {
    device.type = DeviceType::opencl;
  } else if (name != "cpu") {
    throw fail();
  }
  if (colon == std::string_view::npos) return device;
  const char* const first = text.data() + colon + 1;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, device.index);
  if (error != std::errc{} || end != last || first == last || device.index < 0) throw fail();
  return device;
}

std::string Device::str() const {
  if (is_host()) return index == 0 ? "cpu" : "cpu:" + std::to_string(index);
  return (type == DeviceType::cuda ? "cuda:" : "opencl:") + std::to_string(index);
}

}  // namespace palimpsest
