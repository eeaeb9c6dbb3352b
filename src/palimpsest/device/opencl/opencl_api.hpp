// SPDX-License-Identifier: Apache-2.0
// Internal: what this library uses of OpenCL 1.2, declared here so that it builds without headers
// of OpenCL and links no library of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// The names of the headers of OpenCL, whose prototypes have the same types then.
struct _cl_platform_id;
struct _cl_device_id;
struct _cl_context;
struct _cl_command_queue;
struct _cl_mem;
struct _cl_program;
struct _cl_kernel;
struct _cl_event;

namespace palimpsest::opencl {

using Int = std::int32_t;
using UInt = std::uint32_t;
using Bits = std::uint64_t;
using PlatformId = ::_cl_platform_id*;
using DeviceId = ::_cl_device_id*;
using Context = ::_cl_context*;
using CommandQueue = ::_cl_command_queue*;
using Mem = ::_cl_mem*;
using ProgramId = ::_cl_program*;
using Kernel = ::_cl_kernel*;
using Event = ::_cl_event*;

// X(result, name, parameters)
#define PALIMPSEST_OPENCL_FUNCTIONS(X)                                                             \
  X(Int, clGetPlatformIDs, (UInt, PlatformId*, UInt*))                                             \
  X(Int, clGetPlatformInfo, (PlatformId, UInt, std::size_t, void*, std::size_t*))                  \
  X(Int, clGetDeviceIDs, (PlatformId, Bits, UInt, DeviceId*, UInt*))                               \
  X(Int, clGetDeviceInfo, (DeviceId, UInt, std::size_t, void*, std::size_t*))                      \
  X(Context, clCreateContext,                                                                      \
    (const std::intptr_t*, UInt, const DeviceId*,                                                  \
     void (*)(const char*, const void*, std::size_t, void*), void*, Int*))                         \
  X(Int, clReleaseContext, (Context))                                                              \
  X(CommandQueue, clCreateCommandQueue, (Context, DeviceId, Bits, Int*))                           \
  X(Int, clReleaseCommandQueue, (CommandQueue))                                                    \
  X(Mem, clCreateBuffer, (Context, Bits, std::size_t, void*, Int*))                                \
  X(Int, clReleaseMemObject, (Mem))                                                                \
  X(ProgramId, clCreateProgramWithSource, (Context, UInt, const char**, const std::size_t*, Int*)) \
  X(ProgramId, clCreateProgramWithBinary,                                                          \
    (Context, UInt, const DeviceId*, const std::size_t*, const unsigned char**, Int*, Int*))       \
  X(Int, clBuildProgram,                                                                           \
    (ProgramId, UInt, const DeviceId*, const char*, void (*)(ProgramId, void*), void*))            \
  X(Int, clGetProgramInfo, (ProgramId, UInt, std::size_t, void*, std::size_t*))                    \
  X(Int, clGetProgramBuildInfo, (ProgramId, DeviceId, UInt, std::size_t, void*, std::size_t*))     \
  X(Int, clReleaseProgram, (ProgramId))                                                            \
  X(Kernel, clCreateKernel, (ProgramId, const char*, Int*))                                        \
  X(Int, clReleaseKernel, (Kernel))                                                                \
  X(Int, clGetKernelInfo, (Kernel, UInt, std::size_t, void*, std::size_t*))                        \
  X(Int, clGetKernelWorkGroupInfo, (Kernel, DeviceId, UInt, std::size_t, void*, std::size_t*))     \
  X(Int, clSetKernelArg, (Kernel, UInt, std::size_t, const void*))                                 \
  X(Int, clEnqueueNDRangeKernel,                                                                   \
    (CommandQueue, Kernel, UInt, const std::size_t*, const std::size_t*, const std::size_t*, UInt, \
     const Event*, Event*))                                                                        \
  X(Int, clEnqueueReadBuffer,                                                                      \
    (CommandQueue, Mem, UInt, std::size_t, std::size_t, void*, UInt, const Event*, Event*))        \
  X(Int, clEnqueueWriteBuffer,                                                                     \
    (CommandQueue, Mem, UInt, std::size_t, std::size_t, const void*, UInt, const Event*, Event*))  \
  X(Int, clEnqueueCopyBuffer,                                                                      \
    (CommandQueue, Mem, Mem, std::size_t, std::size_t, std::size_t, UInt, const Event*, Event*))   \
  X(Int, clEnqueueFillBuffer,                                                                      \
    (CommandQueue, Mem, const void*, std::size_t, std::size_t, std::size_t, UInt, const Event*,    \
     Event*))                                                                                      \
  X(Int, clEnqueueMigrateMemObjects,                                                               \
    (CommandQueue, UInt, const Mem*, Bits, UInt, const Event*, Event*))                            \
  X(Int, clFlush, (CommandQueue))                                                                  \
  X(Int, clFinish, (CommandQueue))                                                                 \
  X(Int, clWaitForEvents, (UInt, const Event*))                                                    \
  X(Int, clGetEventInfo, (Event, UInt, std::size_t, void*, std::size_t*))                          \
  X(Int, clRetainEvent, (Event))                                                                   \
  X(Int, clReleaseEvent, (Event))

/// The functions of the loader.
struct Api {
#define PALIMPSEST_OPENCL_POINTER(Result, name, parameters) Result(*name) parameters = nullptr;
  PALIMPSEST_OPENCL_FUNCTIONS(PALIMPSEST_OPENCL_POINTER)
#undef PALIMPSEST_OPENCL_POINTER
};

/// The functions of libOpenCL.so.1, loaded by the first call; null, and the reason, without one.
const Api* load_api(std::string* why);

// X(name, macro of CL/cl.h, value)
#define PALIMPSEST_OPENCL_CONSTANTS(X)                             \
  X(kTrue, CL_TRUE, 1)                                             \
  X(kFalse, CL_FALSE, 0)                                           \
  X(kComplete, CL_COMPLETE, 0)                                     \
  X(kDeviceTypeCpu, CL_DEVICE_TYPE_CPU, 2)                         \
  X(kDeviceTypeAll, CL_DEVICE_TYPE_ALL, 0xFFFFFFFF)                \
  X(kPlatformName, CL_PLATFORM_NAME, 0x0902)                       \
  X(kDeviceType, CL_DEVICE_TYPE, 0x1000)                           \
  X(kDeviceComputeUnits, CL_DEVICE_MAX_COMPUTE_UNITS, 0x1002)      \
  X(kDeviceMaxAllocation, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0x1010)    \
  X(kDeviceSingleConfig, CL_DEVICE_SINGLE_FP_CONFIG, 0x101B)       \
  X(kDeviceCacheSize, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 0x101E)     \
  X(kDeviceMemorySize, CL_DEVICE_GLOBAL_MEM_SIZE, 0x101F)          \
  X(kDeviceLocalSize, CL_DEVICE_LOCAL_MEM_SIZE, 0x1023)            \
  X(kDeviceName, CL_DEVICE_NAME, 0x102B)                           \
  X(kDriverVersion, CL_DRIVER_VERSION, 0x102D)                     \
  X(kDeviceDoubleConfig, CL_DEVICE_DOUBLE_FP_CONFIG, 0x1032)       \
  X(kDeviceLanguage, CL_DEVICE_OPENCL_C_VERSION, 0x103D)           \
  X(kRoundedDivideSqrt, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, 0x80) \
  X(kMemReadWrite, CL_MEM_READ_WRITE, 1)                           \
  X(kContentUndefined, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 2) \
  X(kProgramBinarySizes, CL_PROGRAM_BINARY_SIZES, 0x1165)          \
  X(kProgramBinaries, CL_PROGRAM_BINARIES, 0x1166)                 \
  X(kBuildLog, CL_PROGRAM_BUILD_LOG, 0x1183)                       \
  X(kKernelParameters, CL_KERNEL_NUM_ARGS, 0x1191)                 \
  X(kKernelGroupSize, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, 0x11B1)   \
  X(kEventStatus, CL_EVENT_COMMAND_EXECUTION_STATUS, 0x11D3)

#define PALIMPSEST_OPENCL_CONSTANT(name, macro, value) inline constexpr UInt name = value;
PALIMPSEST_OPENCL_CONSTANTS(PALIMPSEST_OPENCL_CONSTANT)
#undef PALIMPSEST_OPENCL_CONSTANT

/// `CL_OUT_OF_RESOURCES (-5)`.
std::string error_name(Int code);

}  // namespace palimpsest::opencl
