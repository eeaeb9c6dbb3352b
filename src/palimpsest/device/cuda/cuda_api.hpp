// SPDX-License-Identifier: Apache-2.0
// Internal: what this library uses of CUDA's driver and of NVRTC, declared here so that it builds
// without the toolkit and links no library of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// The names of the headers of CUDA, whose prototypes have the same types then.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct _nvrtcProgram;

namespace palimpsest::cuda {

using Result = int;  // an enumeration in the headers, as is Attribute
using Attribute = int;
using DeviceId = int;
using Address = unsigned long long;
using Context = ::CUctx_st*;
using Stream = ::CUstream_st*;
using Event = ::CUevent_st*;
using Module = ::CUmod_st*;
using Function = ::CUfunc_st*;
using Graph = ::CUgraph_st*;
using GraphNode = ::CUgraphNode_st*;
using GraphExec = ::CUgraphExec_st*;
using NvrtcProgram = ::_nvrtcProgram*;

/// CUDA_KERNEL_NODE_PARAMS of the headers, which the prototype below takes by its address.
struct KernelNode {
  Function function;
  unsigned groups[3], items[3], shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;  // of a library: none
  Context context;
};

// X(name, exported name, parameters)
#define PALIMPSEST_CUDA_FUNCTIONS(X)                                                             \
  X(cuInit, cuInit, (unsigned))                                                                  \
  X(cuDriverGetVersion, cuDriverGetVersion, (int*))                                              \
  X(cuGetErrorName, cuGetErrorName, (Result, const char**))                                      \
  X(cuDeviceGetCount, cuDeviceGetCount, (int*))                                                  \
  X(cuDeviceGet, cuDeviceGet, (DeviceId*, int))                                                  \
  X(cuDeviceGetName, cuDeviceGetName, (char*, int, DeviceId))                                    \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (std::size_t*, DeviceId))                             \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int*, Attribute, DeviceId))                     \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (Context*, DeviceId))                    \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (DeviceId))                         \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, (Context))                                            \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (Context*))                                             \
  X(cuStreamCreate, cuStreamCreate, (Stream*, unsigned))                                         \
  X(cuStreamDestroy, cuStreamDestroy_v2, (Stream))                                               \
  X(cuStreamWaitEvent, cuStreamWaitEvent, (Stream, Event, unsigned))                             \
  X(cuStreamSynchronize, cuStreamSynchronize, (Stream))                                          \
  X(cuEventCreate, cuEventCreate, (Event*, unsigned))                                            \
  X(cuEventDestroy, cuEventDestroy_v2, (Event))                                                  \
  X(cuEventRecord, cuEventRecord, (Event, Stream))                                               \
  X(cuEventSynchronize, cuEventSynchronize, (Event))                                             \
  X(cuEventQuery, cuEventQuery, (Event))                                                         \
  X(cuMemAlloc, cuMemAlloc_v2, (Address*, std::size_t))                                          \
  X(cuMemFree, cuMemFree_v2, (Address))                                                          \
  X(cuMemAllocHost, cuMemAllocHost_v2, (void**, std::size_t))                                    \
  X(cuMemFreeHost, cuMemFreeHost, (void*))                                                       \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (Address, const void*, std::size_t, Stream))        \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void*, Address, std::size_t, Stream))              \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (Address, Address, std::size_t, Stream))            \
  X(cuMemsetD8Async, cuMemsetD8Async, (Address, unsigned char, std::size_t, Stream))             \
  X(cuModuleLoadData, cuModuleLoadData, (Module*, const void*))                                  \
  X(cuModuleUnload, cuModuleUnload, (Module))                                                    \
  X(cuModuleGetFunction, cuModuleGetFunction, (Function*, Module, const char*))                  \
  X(cuFuncGetAttribute, cuFuncGetAttribute, (int*, Attribute, Function))                         \
  X(cuFuncGetParamInfo, cuFuncGetParamInfo, (Function, std::size_t, std::size_t*, std::size_t*)) \
  X(cuLaunchKernel, cuLaunchKernel,                                                              \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,     \
     void**, void**))                                                                            \
  X(cuGraphCreate, cuGraphCreate, (Graph*, unsigned))                                            \
  X(cuGraphDestroy, cuGraphDestroy, (Graph))                                                     \
  X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2,                                               \
    (GraphNode*, Graph, const GraphNode*, std::size_t, const void*))                             \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))    \
  X(cuGraphLaunch, cuGraphLaunch, (GraphExec, Stream))                                           \
  X(cuGraphExecDestroy, cuGraphExecDestroy, (GraphExec))

#define PALIMPSEST_NVRTC_FUNCTIONS(X)                                                       \
  X(nvrtcVersion, nvrtcVersion, (int*, int*))                                               \
  X(nvrtcCreateProgram, nvrtcCreateProgram,                                                 \
    (NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(nvrtcDestroyProgram, nvrtcDestroyProgram, (NvrtcProgram*))                              \
  X(nvrtcCompileProgram, nvrtcCompileProgram, (NvrtcProgram, int, const char* const*))      \
  X(nvrtcGetCUBINSize, nvrtcGetCUBINSize, (NvrtcProgram, std::size_t*))                     \
  X(nvrtcGetCUBIN, nvrtcGetCUBIN, (NvrtcProgram, char*))                                    \
  X(nvrtcGetProgramLogSize, nvrtcGetProgramLogSize, (NvrtcProgram, std::size_t*))           \
  X(nvrtcGetProgramLog, nvrtcGetProgramLog, (NvrtcProgram, char*))

#define PALIMPSEST_CUDA_POINTER(name, exported, parameters) Result(*name) parameters = nullptr;

/// The functions of libcuda.so.1.
struct Driver {
  PALIMPSEST_CUDA_FUNCTIONS(PALIMPSEST_CUDA_POINTER)
};

/// The functions of libnvrtc.so.13 or .12.
struct Nvrtc {
  PALIMPSEST_NVRTC_FUNCTIONS(PALIMPSEST_CUDA_POINTER)
};
#undef PALIMPSEST_CUDA_POINTER

// X(name, name in cuda.h, value)
#define PALIMPSEST_CUDA_CONSTANTS(X)                                     \
  X(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY, 2)                           \
  X(kStub, CUDA_ERROR_STUB_LIBRARY, 34)                                  \
  X(kNoDevice, CUDA_ERROR_NO_DEVICE, 100)                                \
  X(kNotReady, CUDA_ERROR_NOT_READY, 600)                                \
  X(kNonBlocking, CU_STREAM_NON_BLOCKING, 1)                             \
  X(kWithoutTime, CU_EVENT_DISABLE_TIMING, 2)                            \
  X(kMaxLocalMemory, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8) \
  X(kMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)      \
  X(kCacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                   \
  X(kMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)            \
  X(kMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)            \
  X(kMaxItems, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)

#define PALIMPSEST_CUDA_CONSTANT(name, own, value) inline constexpr int name = value;
PALIMPSEST_CUDA_CONSTANTS(PALIMPSEST_CUDA_CONSTANT)
#undef PALIMPSEST_CUDA_CONSTANT

/// The driver, loaded by the first call; null, and the reason, without one.
const Driver* load_driver(std::string* why);
/// The compiler, alike.
const Nvrtc* load_nvrtc(std::string* why);

/// `CUDA_ERROR_ILLEGAL_ADDRESS (700)`.
std::string error_name(const Driver& driver, Result code);

}  // namespace palimpsest::cuda
