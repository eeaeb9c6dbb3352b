// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/opencl/opencl_api.hpp"

#include <iterator>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/device/loaded_library.hpp"
#include "palimpsest/device/quiet_signals.hpp"

namespace palimpsest::opencl {
namespace {

LoadedLibrary<Api> open_loader() {
  const QuietSignals quiet;
  LoadedLibrary<Api> loaded({"libOpenCL.so.1"}, "no OpenCL loader (libOpenCL.so.1) here");
  if (loaded.library == nullptr) return loaded;
#define PALIMPSEST_OPENCL_LOAD(Result, name, parameters) loaded.find(#name, loaded.functions.name);
  PALIMPSEST_OPENCL_FUNCTIONS(PALIMPSEST_OPENCL_LOAD)
#undef PALIMPSEST_OPENCL_LOAD
  if (!loaded.missing.empty()) {
    loaded.why = "the OpenCL loader (libOpenCL.so.1) here lacks " + loaded.missing +
                 ", expected OpenCL 1.2 or later";
  }
  return loaded;
}

}  // namespace

const Api* load_api(std::string* why) {
  return immortal([] { return open_loader(); }).usable(why);
}

std::string error_name(Int code) {
  static constexpr const char* kNames[] = {"SUCCESS",
                                           "DEVICE_NOT_FOUND",
                                           "DEVICE_NOT_AVAILABLE",
                                           "COMPILER_NOT_AVAILABLE",
                                           "MEM_OBJECT_ALLOCATION_FAILURE",
                                           "OUT_OF_RESOURCES",
                                           "OUT_OF_HOST_MEMORY",
                                           "PROFILING_INFO_NOT_AVAILABLE",
                                           "MEM_COPY_OVERLAP",
                                           "IMAGE_FORMAT_MISMATCH",
                                           "IMAGE_FORMAT_NOT_SUPPORTED",
                                           "BUILD_PROGRAM_FAILURE",
                                           "MAP_FAILURE",
                                           "MISALIGNED_SUB_BUFFER_OFFSET",
                                           "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"};
  static constexpr const char* kInvalid[] = {"VALUE",           "DEVICE_TYPE",
                                             "PLATFORM",        "DEVICE",
                                             "CONTEXT",         "QUEUE_PROPERTIES",
                                             "COMMAND_QUEUE",   "HOST_PTR",
                                             "MEM_OBJECT",      "IMAGE_FORMAT_DESCRIPTOR",
                                             "IMAGE_SIZE",      "SAMPLER",
                                             "BINARY",          "BUILD_OPTIONS",
                                             "PROGRAM",         "PROGRAM_EXECUTABLE",
                                             "KERNEL_NAME",     "KERNEL_DEFINITION",
                                             "KERNEL",          "ARG_INDEX",
                                             "ARG_VALUE",       "ARG_SIZE",
                                             "KERNEL_ARGS",     "WORK_DIMENSION",
                                             "WORK_GROUP_SIZE", "WORK_ITEM_SIZE",
                                             "GLOBAL_OFFSET",   "EVENT_WAIT_LIST",
                                             "EVENT",           "OPERATION",
                                             "GL_OBJECT",       "BUFFER_SIZE"};
  std::string name = "error";
  if (code <= 0 && -code < static_cast<Int>(std::size(kNames))) {
    name = std::string("CL_") + kNames[-code];
  } else if (code <= -30 && -30 - code < static_cast<Int>(std::size(kInvalid))) {
    name = std::string("CL_INVALID_") + kInvalid[-30 - code];
  }
  return name + " (" + std::to_string(code) + ")";
}

}  // namespace palimpsest::opencl
