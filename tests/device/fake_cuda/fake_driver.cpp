// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 of the tests: memory and kernels by OpenCL, streams that run nothing until somebody
// waits and then only what is needed. Misuse of the driver is an error or ends the process: a call
// without a current context, an address that is not the start of an allocation, a module or memory
// that is freed while commands use it. FAKE_CUDA_FAIL=k: the k-th call that may fail does, and all
// later ones.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "device/fake_cuda/fake_opencl.hpp"
#include "palimpsest/device/cuda/cuda_api.hpp"

namespace {

namespace cl = fake_cuda::cl;
using fake_cuda::device;
using fake_cuda::give_up;

enum : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kStub = 34,
  kNoDevice = 100,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
};
constexpr int kPatience = 64;
constexpr unsigned char kPoison = 0xDB;

}  // namespace

struct CUctx_st {};
struct CUfunc_st;
struct CUmod_st {
  cl::ProgramId program;
  std::vector<CUfunc_st*> functions;
  int pending = 0;
};
struct CUfunc_st {
  CUmod_st* module;
  cl::Kernel kernel;
  std::vector<bool> is_address;  // of each parameter
  std::size_t items;
};
struct CUstream_st {
  struct Command {
    std::function<void()> run;  // empty: a wait
    CUstream_st* marked = nullptr;
    std::uint64_t mark = 0;
  };
  std::deque<Command> commands;  // numbers done + 1, ..
  std::uint64_t done = 0;
};
struct CUgraphNode_st {
  std::function<void()> run;
  CUmod_st* module;
  std::vector<std::size_t> after;  // positions of nodes
};
struct CUgraph_st {
  std::vector<CUgraphNode_st*> nodes;
};
struct CUgraphExec_st {
  std::vector<CUgraphNode_st> nodes;
  int pending = 0;
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  std::uint64_t mark = 0;
};

namespace {

struct Block {
  std::size_t bytes;
  cl::Mem mem;
};

struct State {
  std::recursive_mutex mutex;
  bool is_initialized = false;
  int retained = 0;
  long calls = 0;
  bool has_failed = false;
  int asked_in_vain = 0;
  CUctx_st context;
  std::map<std::uint64_t, Block> blocks;
  std::map<char*, std::size_t> staging;
  std::vector<CUstream_st*> streams;
};
State& state() {
  static State* const the = new State;
  return *the;
}
thread_local std::vector<CUctx_st*> current;

bool fails_now() {
  static const char* const wanted = std::getenv("FAKE_CUDA_FAIL");
  if (wanted != nullptr && ++state().calls == std::atol(wanted)) state().has_failed = true;
  return state().has_failed;
}

struct Place {
  cl::Mem mem;
  std::size_t offset;
};
bool find(std::uint64_t address, std::size_t bytes, Place* place) {
  auto found = state().blocks.upper_bound(address);
  if (found == state().blocks.begin()) return false;
  --found;
  const std::uint64_t offset = address - found->first;
  if (offset > found->second.bytes || bytes > found->second.bytes - offset) return false;
  *place = {found->second.mem, offset};
  return true;
}
bool is_staging(const void* address, std::size_t bytes) {
  char* const at = static_cast<char*>(const_cast<void*>(address));
  auto found = state().staging.upper_bound(at);
  if (found == state().staging.begin()) return false;
  --found;
  return at + bytes <= found->first + found->second;
}

void check_cl(cl::Int code, const char* what) {
  if (code != 0) give_up(std::string(what) + " gives " + std::to_string(code));
}
void finish() { check_cl(device().api.clFinish(device().queue), "clFinish"); }

using Needed = std::map<CUstream_st*, std::uint64_t>;

void need(CUstream_st* stream, std::uint64_t mark, Needed& needed) {
  const std::uint64_t from = std::max(needed[stream], stream->done);
  if (mark <= from) return;
  needed[stream] = mark;
  for (std::uint64_t number = from + 1; number <= mark; ++number) {
    const auto& command = stream->commands[number - stream->done - 1];
    if (!command.run && command.marked != nullptr) need(command.marked, command.mark, needed);
  }
}

// Runs what the commands of a stream up to a mark need, and nothing else.
void run_needed(CUstream_st* stream, std::uint64_t mark) {
  Needed needed;
  need(stream, mark, needed);
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const auto& [one, until] : needed) {
      while (one->done < until) {
        auto& next = one->commands.front();
        if (!next.run && next.marked != nullptr && next.marked->done < next.mark) break;
        const auto command = std::move(next);
        one->commands.pop_front();
        ++one->done;
        if (command.run) command.run();
        goes_on = true;
      }
    }
  }
}

// The legacy stream has the handles 0 and 1.
CUstream_st* real(CUstream_st* stream) {
  static CUstream_st legacy;
  return reinterpret_cast<std::uintptr_t>(stream) <= 1 ? &legacy : stream;
}

std::uint64_t end_of(const CUstream_st* stream) { return stream->done + stream->commands.size(); }

int enqueue(CUstream_st* stream, std::function<void()> run) {
  real(stream)->commands.push_back({std::move(run), nullptr, 0});
  return kSuccess;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default"))) int
// Calls that need a context, and those that may fail.
#define IN_CONTEXT                                     \
  const std::lock_guard guard(state().mutex);          \
  if (!state().is_initialized) return kNotInitialized; \
  if (current.empty() || current.back() != &state().context) return kInvalidContext
#define MAY_FAIL \
  IN_CONTEXT;    \
  if (fails_now()) return kIllegalAddress

EXPORTED cuInit(unsigned) {
  if (std::getenv("FAKE_CUDA_STUB") != nullptr) return kStub;
  state().is_initialized = true;
  return kSuccess;
}
EXPORTED cuDriverGetVersion(int* version) {
  const char* const wanted = std::getenv("FAKE_CUDA_VERSION");
  *version = wanted != nullptr ? std::atoi(wanted) : 13000;
  return kSuccess;
}
EXPORTED cuGetErrorName(int code, const char** name) {
  *name = code == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
  return kSuccess;
}
EXPORTED cuDeviceGetCount(int* n) {
  *n = 1;
  return kSuccess;
}
EXPORTED cuDeviceGet(int* id, int index) {
  *id = index;
  return index == 0 ? kSuccess : kInvalidValue;
}
EXPORTED cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "fake CUDA device");
  return kSuccess;
}
EXPORTED cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{2} << 30;
  return kSuccess;
}
EXPORTED cuDeviceGetAttribute(int* value, int what, int) {
  switch (what) {
    case 8:
      *value = 48 << 10;
      break;
    case 16:
      *value = 2;
      break;
    case 38:
      *value = 4 << 20;
      break;
    case 75:
      *value = 9;
      break;
    case 76:
      *value = 0;
      break;
    default:
      return kInvalidValue;
  }
  return kSuccess;
}
EXPORTED cuDevicePrimaryCtxRetain(CUctx_st** context, int) {
  const std::lock_guard guard(state().mutex);
  ++state().retained;
  *context = &state().context;
  return kSuccess;
}
EXPORTED cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard guard(state().mutex);
  return --state().retained >= 0 ? kSuccess : kInvalidContext;
}
EXPORTED cuCtxPushCurrent_v2(CUctx_st* context) {
  current.push_back(context);
  return kSuccess;
}
EXPORTED cuCtxPopCurrent_v2(CUctx_st** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return kSuccess;
}

EXPORTED cuStreamCreate(CUstream_st** stream, unsigned) {
  MAY_FAIL;
  *stream = new CUstream_st;
  state().streams.push_back(*stream);
  return kSuccess;
}
EXPORTED cuStreamDestroy_v2(CUstream_st* stream) {
  IN_CONTEXT;
  std::erase(state().streams, stream);
  delete stream;
  return kSuccess;
}
EXPORTED cuStreamSynchronize(CUstream_st* stream) {
  IN_CONTEXT;
  stream = real(stream);
  run_needed(stream, end_of(stream));
  return state().has_failed ? kIllegalAddress : kSuccess;
}
EXPORTED cuStreamWaitEvent(CUstream_st* stream, CUevent_st* event, unsigned) {
  MAY_FAIL;
  if (event == nullptr || event->stream == nullptr) return kInvalidHandle;
  real(stream)->commands.push_back({nullptr, event->stream, event->mark});
  return kSuccess;
}
EXPORTED cuEventCreate(CUevent_st** event, unsigned) {
  MAY_FAIL;
  *event = new CUevent_st;
  return kSuccess;
}
EXPORTED cuEventDestroy_v2(CUevent_st* event) {
  IN_CONTEXT;
  delete event;
  return kSuccess;
}
EXPORTED cuEventRecord(CUevent_st* event, CUstream_st* stream) {
  MAY_FAIL;
  event->stream = real(stream);
  event->mark = end_of(event->stream);
  return kSuccess;
}
EXPORTED cuEventQuery(CUevent_st* event) {
  MAY_FAIL;
  if (event->stream == nullptr || event->stream->done >= event->mark) return kSuccess;
  if (++state().asked_in_vain < kPatience) return kNotReady;
  state().asked_in_vain = 0;
  run_needed(event->stream, event->mark);
  return kSuccess;
}
EXPORTED cuEventSynchronize(CUevent_st* event) {
  MAY_FAIL;
  if (event->stream != nullptr) run_needed(event->stream, event->mark);
  return kSuccess;
}

EXPORTED cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  MAY_FAIL;
  std::size_t all = bytes;
  for (const auto& [first, block] : state().blocks) all += block.bytes;
  if (bytes == 0 || all > std::size_t{2} << 30) return kOutOfMemory;
  void* const space =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  cl::Int code = 0;
  const cl::Mem mem =
      device().api.clCreateBuffer(device().context, cl::kMemReadWrite, bytes, nullptr, &code);
  if (space == MAP_FAILED || code != 0) return kOutOfMemory;
  check_cl(device().api.clEnqueueFillBuffer(device().queue, mem, &kPoison, 1, 0, bytes, 0, nullptr,
                                            nullptr),
           "clEnqueueFillBuffer");
  finish();
  *address = reinterpret_cast<std::uint64_t>(space);
  state().blocks[*address] = {bytes, mem};
  return kSuccess;
}
EXPORTED cuMemFree_v2(unsigned long long address) {
  IN_CONTEXT;
  const auto found = state().blocks.find(address);
  if (found == state().blocks.end()) return kInvalidValue;
  device().api.clReleaseMemObject(found->second.mem);
  ::munmap(reinterpret_cast<void*>(address), found->second.bytes);
  state().blocks.erase(found);
  return kSuccess;
}
EXPORTED cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  MAY_FAIL;
  *memory = std::malloc(bytes + 1);
  std::memset(*memory, kPoison, bytes);
  state().staging[static_cast<char*>(*memory)] = bytes;
  return kSuccess;
}
EXPORTED cuMemFreeHost(void* memory) {
  IN_CONTEXT;
  const auto found = state().staging.find(static_cast<char*>(memory));
  if (found == state().staging.end()) return kInvalidValue;
  std::memset(memory, kPoison, found->second);
  state().staging.erase(found);
  std::free(memory);
  return kSuccess;
}
EXPORTED cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes,
                              CUstream_st* stream) {
  MAY_FAIL;
  Place place;
  if (!find(to, bytes, &place) || !is_staging(from, bytes)) return kInvalidValue;
  return enqueue(stream, [=] {
    Place now;
    if (!find(to, bytes, &now) || !is_staging(from, bytes)) give_up("a copy from freed memory");
    check_cl(device().api.clEnqueueWriteBuffer(device().queue, now.mem, cl::kTrue, now.offset,
                                               bytes, from, 0, nullptr, nullptr),
             "clEnqueueWriteBuffer");
  });
}
EXPORTED cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes,
                              CUstream_st* stream) {
  MAY_FAIL;
  Place place;
  if (!find(from, bytes, &place) || !is_staging(to, bytes)) return kInvalidValue;
  return enqueue(stream, [=] {
    Place now;
    if (!find(from, bytes, &now) || !is_staging(to, bytes)) give_up("a copy to freed memory");
    check_cl(device().api.clEnqueueReadBuffer(device().queue, now.mem, cl::kTrue, now.offset, bytes,
                                              to, 0, nullptr, nullptr),
             "clEnqueueReadBuffer");
  });
}
EXPORTED cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes,
                              CUstream_st* stream) {
  MAY_FAIL;
  Place place;
  if (!find(from, bytes, &place) || !find(to, bytes, &place)) return kInvalidValue;
  return enqueue(stream, [=] {
    Place source;
    Place target;
    if (!find(from, bytes, &source) || !find(to, bytes, &target)) give_up("a copy of freed memory");
    check_cl(device().api.clEnqueueCopyBuffer(device().queue, source.mem, target.mem, source.offset,
                                              target.offset, bytes, 0, nullptr, nullptr),
             "clEnqueueCopyBuffer");
    finish();
  });
}
EXPORTED cuMemsetD8Async(unsigned long long to, unsigned char byte, std::size_t bytes,
                         CUstream_st* stream) {
  MAY_FAIL;
  Place place;
  if (!find(to, bytes, &place)) return kInvalidValue;
  return enqueue(stream, [=] {
    Place now;
    if (!find(to, bytes, &now)) give_up("a fill of freed memory");
    check_cl(device().api.clEnqueueFillBuffer(device().queue, now.mem, &byte, 1, now.offset, bytes,
                                              0, nullptr, nullptr),
             "clEnqueueFillBuffer");
    finish();
  });
}

EXPORTED cuModuleLoadData(CUmod_st** module, const void* image) {
  MAY_FAIL;
  const char* const text = static_cast<const char*>(image);
  if (std::strncmp(text, "\n#define KERNEL", 15) != 0) return kInvalidImage;
  const cl::ProgramId program = device().build(text, nullptr);
  if (program == nullptr) return kInvalidImage;
  *module = new CUmod_st{program, {}};
  return kSuccess;
}
EXPORTED cuModuleUnload(CUmod_st* module) {
  IN_CONTEXT;
  if (module->pending > 0) give_up("a module is unloaded while its kernels wait");
  for (CUfunc_st* const function : module->functions) {
    device().api.clReleaseKernel(function->kernel);
    delete function;
  }
  device().api.clReleaseProgram(module->program);
  delete module;
  return kSuccess;
}
EXPORTED cuModuleGetFunction(CUfunc_st** function, CUmod_st* module, const char* name) {
  MAY_FAIL;
  cl::Int code = 0;
  const cl::Kernel kernel = device().api.clCreateKernel(module->program, name, &code);
  if (code != 0) return kNotFound;
  cl::UInt n = 0;
  device().api.clGetKernelInfo(kernel, cl::kKernelParameters, sizeof n, &n, nullptr);
  std::array<std::size_t, 3> items{};
  device().api.clGetKernelWorkGroupInfo(kernel, device().id, cl::kKernelGroupSize, sizeof items,
                                        items.data(), nullptr);
  *function = new CUfunc_st{module, kernel, {}, items[0]};
  for (cl::UInt i = 0; i < n; ++i) {
    cl::UInt kind = 0;
    check_cl(device().argument_info(kernel, i, 0x1196, sizeof kind, &kind, nullptr),
             "clGetKernelArgInfo");
    (*function)->is_address.push_back(kind == 0x119B);  // in global memory
  }
  module->functions.push_back(*function);
  return kSuccess;
}
EXPORTED cuFuncGetAttribute(int* value, int, CUfunc_st* function) {
  IN_CONTEXT;
  *value = static_cast<int>(function->items);
  return kSuccess;
}
EXPORTED cuFuncGetParamInfo(CUfunc_st* function, std::size_t index, std::size_t* offset,
                            std::size_t* bytes) {
  IN_CONTEXT;
  if (index >= function->is_address.size()) return kInvalidValue;
  *offset = 8 * index;
  *bytes = 8;
  return kSuccess;
}

// The work of a launch when its turn comes; nothing if its arguments are wrong.
std::function<void()> launch_of(CUfunc_st* function, std::array<std::size_t, 3> groups,
                                std::size_t items, void** parameters) {
  if (items != function->items || groups[0] * groups[1] * groups[2] == 0) return {};
  std::vector<std::uint64_t> values(function->is_address.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::memcpy(&values[i], parameters[i], 8);
    if (function->is_address[i] && values[i] != 0 && state().blocks.count(values[i]) == 0) {
      return {};
    }
  }
  return [=] {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint64_t value = values[i];
      if (function->is_address[i] && value != 0) {
        const auto found = state().blocks.find(value);
        if (found == state().blocks.end()) give_up("a kernel on freed memory");
        value = reinterpret_cast<std::uint64_t>(found->second.mem);
      }
      check_cl(device().api.clSetKernelArg(function->kernel, static_cast<cl::UInt>(i), 8, &value),
               "clSetKernelArg");
    }
    const std::array<std::size_t, 3> all{groups[0] * items, groups[1], groups[2]};
    const std::array<std::size_t, 3> group{items, 1, 1};
    check_cl(device().api.clEnqueueNDRangeKernel(device().queue, function->kernel, 3, nullptr,
                                                 all.data(), group.data(), 0, nullptr, nullptr),
             "clEnqueueNDRangeKernel");
    finish();
  };
}

EXPORTED cuLaunchKernel(CUfunc_st* function, unsigned x, unsigned y, unsigned z, unsigned items,
                        unsigned, unsigned, unsigned, CUstream_st* stream, void** parameters,
                        void**) {
  MAY_FAIL;
  const auto run = launch_of(function, {x, y, z}, items, parameters);
  if (!run) return kInvalidValue;
  ++function->module->pending;
  return enqueue(stream, [=] {
    run();
    --function->module->pending;
  });
}

EXPORTED cuGraphCreate(CUgraph_st** graph, unsigned) {
  MAY_FAIL;
  *graph = new CUgraph_st;
  return kSuccess;
}
EXPORTED cuGraphDestroy(CUgraph_st* graph) {
  IN_CONTEXT;
  for (CUgraphNode_st* const node : graph->nodes) delete node;
  delete graph;
  return kSuccess;
}
EXPORTED cuGraphAddKernelNode_v2(CUgraphNode_st** node, CUgraph_st* graph,
                                 CUgraphNode_st* const* after, std::size_t n, const void* given) {
  MAY_FAIL;
  const auto& wanted = *static_cast<const palimpsest::cuda::KernelNode*>(given);
  const auto run =
      launch_of(wanted.function, {wanted.groups[0], wanted.groups[1], wanted.groups[2]},
                wanted.items[0], wanted.parameters);
  if (!run || wanted.context != &state().context) return kInvalidValue;
  std::vector<std::size_t> positions;
  for (std::size_t k = 0; k < n; ++k) {
    const auto found = std::find(graph->nodes.begin(), graph->nodes.end(), after[k]);
    if (found == graph->nodes.end()) return kInvalidValue;
    positions.push_back(static_cast<std::size_t>(found - graph->nodes.begin()));
  }
  *node = new CUgraphNode_st{run, wanted.function->module, std::move(positions)};
  graph->nodes.push_back(*node);
  return kSuccess;
}
EXPORTED cuGraphInstantiateWithFlags(CUgraphExec_st** exec, CUgraph_st* graph, unsigned long long) {
  MAY_FAIL;
  *exec = new CUgraphExec_st;
  for (const CUgraphNode_st* const node : graph->nodes) (*exec)->nodes.push_back(*node);
  return kSuccess;
}
EXPORTED cuGraphExecDestroy(CUgraphExec_st* exec) {
  IN_CONTEXT;
  if (exec->pending > 0) give_up("a graph is destroyed while it waits");
  delete exec;
  return kSuccess;
}
// Of the nodes that may run the last one does.
EXPORTED cuGraphLaunch(CUgraphExec_st* exec, CUstream_st* stream) {
  MAY_FAIL;
  ++exec->pending;
  for (const CUgraphNode_st& node : exec->nodes) ++node.module->pending;
  return enqueue(stream, [=] {
    std::vector<bool> has_run(exec->nodes.size());
    for (std::size_t n = exec->nodes.size(); n > 0; --n) {
      for (std::size_t i = exec->nodes.size(); i-- > 0;) {
        const CUgraphNode_st& node = exec->nodes[i];
        if (has_run[i] || !std::all_of(node.after.begin(), node.after.end(),
                                       [&](std::size_t j) { return has_run[j]; })) {
          continue;
        }
        node.run();
        has_run[i] = true;
        break;
      }
    }
    for (const CUgraphNode_st& node : exec->nodes) --node.module->pending;
    --exec->pending;
  });
}
