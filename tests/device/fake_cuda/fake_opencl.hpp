// SPDX-License-Identifier: Apache-2.0
// The OpenCL device behind the fake CUDA.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "palimpsest/device/opencl/opencl_api.hpp"
#include "palimpsest/device/text/preludes.hpp"

namespace fake_cuda {

namespace cl = palimpsest::opencl;

[[noreturn]] inline void give_up(const std::string& what) {
  std::fprintf(stderr, "fake CUDA: %s\n", what.c_str());
  std::abort();
}

struct Device {
  cl::Api api;
  cl::Int (*argument_info)(cl::Kernel, cl::UInt, cl::UInt, std::size_t, void*, std::size_t*);
  cl::DeviceId id = nullptr;
  cl::Context context = nullptr;
  cl::CommandQueue queue = nullptr;

  // The text that NVRTC got, for OpenCL. The log of a failure goes to `log`.
  cl::ProgramId build(const std::string& cuda_text, std::string* log) const {
    const std::string whole =
        std::string(palimpsest::kOpenClPrelude) + cuda_text.substr(cuda_text.find("#line 1 \""));
    const char* first = whole.c_str();
    const std::size_t length = whole.size();
    cl::Int code = 0;
    const cl::ProgramId program = api.clCreateProgramWithSource(context, 1, &first, &length, &code);
    const char* const options =
        "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt -cl-kernel-arg-info";
    code = api.clBuildProgram(program, 1, &id, options, nullptr, nullptr);
    if (code == 0) return program;
    std::string text(1 << 16, '\0');
    api.clGetProgramBuildInfo(program, id, cl::kBuildLog, text.size(), text.data(), nullptr);
    if (log != nullptr) *log = text.c_str();
    api.clReleaseProgram(program);
    return nullptr;
  }
};

inline Device open_device() {
  Device device;
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) give_up("needs libOpenCL.so.1");
#define FAKE_CUDA_LOAD(Result, name, parameters) \
  device.api.name = reinterpret_cast<decltype(device.api.name)>(dlsym(library, #name));
  PALIMPSEST_OPENCL_FUNCTIONS(FAKE_CUDA_LOAD)
#undef FAKE_CUDA_LOAD
  device.argument_info =
      reinterpret_cast<decltype(device.argument_info)>(dlsym(library, "clGetKernelArgInfo"));
  cl::PlatformId platform = nullptr;
  cl::Int code = 0;
  if (device.api.clGetPlatformIDs(1, &platform, nullptr) != 0 ||
      device.api.clGetDeviceIDs(platform, cl::kDeviceTypeAll, 1, &device.id, nullptr) != 0) {
    give_up("needs an OpenCL device, as of pocl-opencl-icd");
  }
  device.context = device.api.clCreateContext(nullptr, 1, &device.id, nullptr, nullptr, &code);
  device.queue = device.api.clCreateCommandQueue(device.context, device.id, 0, &code);
  return device;
}

inline const Device& device() {
  static const Device* const the = new Device(open_device());
  return *the;
}

}  // namespace fake_cuda
