// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/devices.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/device/cuda/cuda_backend.hpp"
#include "palimpsest/device/messages.hpp"
#include "palimpsest/device/opencl/opencl_backend.hpp"

namespace palimpsest {
namespace {

using Backends = std::vector<std::shared_ptr<DeviceBackend>>;

// Accelerators of one type.
struct Kind {
  Backends all;
  std::string why;  // there are none
  bool is_loaded = false;
  unsigned generation = 0;  // of the process that loaded the driver
};

struct Machine {
  Mutex mutex;
  Kind opencl;
  Kind cuda;
  std::map<Device, std::shared_ptr<DeviceBackend>> added;

  Kind& kind_of(DeviceType type) { return type == DeviceType::cuda ? cuda : opencl; }
};

Machine& machine() {
  return immortal([] { return Machine(); });
}

Backends opencl_backends(std::string& why) {
  const opencl::Api* const api = opencl::load_api(&why);
  return api == nullptr ? Backends() : opencl::backends(*api, why);
}

Backends cuda_backends(std::string& why) {
  const cuda::Driver* const driver = cuda::load_driver(&why);
  return driver == nullptr ? Backends() : cuda::backends(*driver, why);
}

// Names of the host and of the accelerators that are loaded, as `cpu:0, opencl:0`.
std::string names_here(const Machine& here) {
  std::string names = "cpu:0";
  for (const Kind* const kind : {&here.opencl, &here.cuda}) {
    const DeviceType type = kind == &here.cuda ? DeviceType::cuda : DeviceType::opencl;
    for (std::size_t i = 0; i < kind->all.size(); ++i) {
      names += ", " + Device{type, static_cast<std::int16_t>(i)}.str();
    }
  }
  return names;
}

// Precondition: the mutex is held.
Kind& loaded(Machine& here, DeviceType type) {
  Kind& kind = here.kind_of(type);
  if (kind.is_loaded) return kind;
  kind.all = type == DeviceType::cuda ? cuda_backends(kind.why) : opencl_backends(kind.why);
  kind.generation = process_generation();
  kind.is_loaded = true;
  return kind;
}

}  // namespace

std::function<void()> DeviceBackend::adopt(std::byte* first, std::size_t,
                                           std::function<void()> deleter) {
  if (owns(first)) return deleter;
  throw NotSupported(
      fmt::format("[{}] memory of another library, expected memory of this one", facts().name));
}

DeviceBackend& backend_of(Device device) {
  if (device.is_host()) {
    throw DeviceError(
        fmt::format("[device] got {}, expected an accelerator such as opencl:0", device.str()));
  }
  Machine& here = machine();
  const std::lock_guard guard(here.mutex);
  if (const auto found = here.added.find(device); found != here.added.end()) {
    return *found->second;
  }
  const Kind& kind = loaded(here, device.type);
  if (kind.all.empty()) {
    throw DeviceError(
        fmt::format("[{}] {}; devices: {}", device.str(), kind.why, names_here(here)));
  }
  if (kind.generation != process_generation()) throw DeviceError(forked_text(device.str()));
  const auto index = static_cast<std::size_t>(device.index);
  if (index >= kind.all.size()) {
    throw DeviceError(fmt::format("[device] {}: this machine has {}; devices: {}", device.str(),
                                  kind.all.size(), names_here(here)));
  }
  return *kind.all[index];
}

std::vector<Device> devices_here(DeviceType type, std::string* why) {
  if (type == DeviceType::cpu) return {Device{}};
  Machine& here = machine();
  const std::lock_guard guard(here.mutex);
  const Kind& kind = loaded(here, type);
  std::string reason = kind.why;
  std::vector<Device> found;
  if (kind.generation != process_generation()) {
    reason = forked_text(Device{type, 0}.str());
  } else {
    for (std::size_t i = 0; i < kind.all.size(); ++i) {
      found.push_back({type, static_cast<std::int16_t>(i)});
    }
  }
  if (found.empty() && why != nullptr) *why = reason;
  return found;
}

void add_backend(Device device, std::shared_ptr<DeviceBackend> backend) {
  Machine& here = machine();
  const std::lock_guard guard(here.mutex);
  here.added[device] = std::move(backend);
}

}  // namespace palimpsest
