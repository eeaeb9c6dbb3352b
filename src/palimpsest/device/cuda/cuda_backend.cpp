// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/cuda/cuda_backend.hpp"

#include <dlfcn.h>

#include "palimpsest/device/quiet_signals.hpp"

namespace palimpsest::cuda {

std::vector<std::shared_ptr<DeviceBackend>> backends(std::string& why) {
  const QuietSignals quiet;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  why = library == nullptr ? "no CUDA driver (libcuda.so.1) here"
                           : "CUDA cannot be used by this version";
  return {};
}

}  // namespace palimpsest::cuda
