// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/opencl/opencl_backend.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/device/messages.hpp"
#include "palimpsest/device/queued_backend.hpp"
#include "palimpsest/device/quiet_signals.hpp"
#include "palimpsest/device/text/preludes.hpp"

namespace palimpsest::opencl {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStagingAlignment = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

template <class T>
T device_value(const Api& api, DeviceId device, UInt what) {
  T value{};
  api.clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

// The text that get(size, data, needed) gives.
template <class Get>
std::string text_of(Get get) {
  std::size_t bytes = 0;
  if (get(0, nullptr, &bytes) != 0 || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(bytes, text.data(), nullptr) != 0) return {};
  return text.substr(0, text.find('\0'));
}

std::string device_text(const Api& api, DeviceId device, UInt what) {
  return text_of([&](std::size_t bytes, void* data, std::size_t* needed) {
    return api.clGetDeviceInfo(device, what, bytes, data, needed);
  });
}

DeviceFacts facts_of(const Api& api, PlatformId platform, DeviceId device) {
  DeviceFacts facts;
  facts.name = device_text(api, device, kDeviceName);
  facts.driver = text_of([&](std::size_t bytes, void* data, std::size_t* needed) {
    return api.clGetPlatformInfo(platform, kPlatformName, bytes, data, needed);
  });
  facts.driver += " " + device_text(api, device, kDriverVersion);
  facts.isa = device_text(api, device, kDeviceLanguage);
  facts.memory_bytes = device_value<Bits>(api, device, kDeviceMemorySize);
  facts.largest_allocation = device_value<Bits>(api, device, kDeviceMaxAllocation);
  facts.cache_bytes = device_value<Bits>(api, device, kDeviceCacheSize);
  facts.local_bytes = device_value<Bits>(api, device, kDeviceLocalSize);
  facts.groups = static_cast<int>(device_value<UInt>(api, device, kDeviceComputeUnits));
  facts.options = "-cl-std=CL1.2";
  if ((device_value<Bits>(api, device, kDeviceSingleConfig) & kRoundedDivideSqrt) != 0) {
    facts.options += " -cl-fp32-correctly-rounded-divide-sqrt";
  }
  facts.options += " -cl-kernel-arg-info";  // as the fake driver of the tests: one compilation
  facts.has_float64 = device_value<Bits>(api, device, kDeviceDoubleConfig) != 0;
  facts.compiles_late = (device_value<Bits>(api, device, kDeviceType) & kDeviceTypeCpu) != 0;
  return facts;
}

class Kernels final : public LoadedKernels {
 public:
  struct Entry {
    Kernel kernel = nullptr;
    std::string name;
    UInt parameters = 0;
    std::size_t items = 0;
    std::atomic<bool> has_run{false};
  };

  Kernels(const Api& api, ProgramId program, const DeviceBackend* owner)
      : of(owner), api_(api), program_(program) {}
  ~Kernels() override {
    if (process_generation() != generation_) return;
    for (const Entry& entry : entries) {
      if (entry.kernel != nullptr) api_.clReleaseKernel(entry.kernel);
    }
    api_.clReleaseProgram(program_);
  }

  std::vector<std::byte> binary() const override {
    std::size_t bytes = 0;
    if (api_.clGetProgramInfo(program_, kProgramBinarySizes, sizeof bytes, &bytes, nullptr) != 0) {
      return {};
    }
    std::vector<std::byte> data(bytes);
    std::byte* first = data.data();
    const QuietSignals quiet;
    if (api_.clGetProgramInfo(program_, kProgramBinaries, sizeof first, &first, nullptr) != 0) {
      return {};
    }
    return data;
  }

  const DeviceBackend* const of;
  mutable std::deque<Entry> entries;

 private:
  const Api& api_;
  ProgramId program_;
  unsigned generation_ = process_generation();
};

class Backend final : public QueuedBackend {
 public:
  Backend(const Api& api, PlatformId platform, DeviceId device, std::string name)
      : QueuedBackend(std::move(name)),
        api_(api),
        device_(device),
        facts_(facts_of(api, platform, device)) {
    Int code = 0;
    context_ = api_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code);
    if (code == 0) queue_ = api_.clCreateCommandQueue(context_, device_, 0, &code);
    if (code == 0) return;
    release();
    throw DeviceError(fmt::format("[{}] cannot be used: {}", device_name(), error_name(code)));
  }
  ~Backend() override {
    if (is_forked()) return;
    api_.clFinish(queue_);
    forget_commands();
    blocks_.for_each([this](std::byte* first, std::size_t bytes, void* mem) {
      api_.clReleaseMemObject(static_cast<Mem>(mem));
      ::munmap(first, whole_pages(bytes));
    });
    release();
  }

  const DeviceFacts& facts() const override { return facts_; }

  std::byte* obtain(std::size_t bytes) noexcept override {
    if (bytes == 0 || bytes > facts_.largest_allocation || is_forked()) return nullptr;
    if (!count_in(bytes)) return nullptr;
    void* const space = ::mmap(nullptr, whole_pages(bytes), PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    std::byte* const first = static_cast<std::byte*>(space);
    const Mem mem = space == MAP_FAILED ? nullptr : allocate(bytes);
    if (mem != nullptr) {
      if (blocks_.add(first, bytes, mem)) return first;
      api_.clReleaseMemObject(mem);
    }
    if (space != MAP_FAILED) ::munmap(space, whole_pages(bytes));
    obtained_ -= bytes;
    return nullptr;
  }

  void give_back(std::byte* first, std::size_t bytes) noexcept override {
    if (first == nullptr || is_forked()) return;
    const std::optional<void*> mem = blocks_.take(first, bytes);
    if (!mem) return;
    api_.clReleaseMemObject(static_cast<Mem>(*mem));  // once the commands that use it have run
    obtained_ -= bytes;
    ::munmap(first, whole_pages(bytes));
  }

  std::byte* obtain_staging(std::size_t bytes) noexcept override {
    const std::size_t whole =
        (bytes + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment;
    auto* const first = static_cast<std::byte*>(std::aligned_alloc(kStagingAlignment, whole));
    if (first == nullptr || staging_.add(first, bytes, {})) return first;
    std::free(first);
    return nullptr;
  }
  void give_back_staging(std::byte* first, std::size_t bytes) noexcept override {
    staging_.take(first, bytes);
    if (is_lost()) return;  // commands that nobody can wait for may still use it
    std::free(first);
  }

  KernelProgram load(const KernelText& text, std::span<const std::byte> binary) override;
  void launch(const Launch& launch) override;

 protected:
  int status_of(void* ending) noexcept override {
    Int status = 0;
    const Int code = api_.clGetEventInfo(static_cast<Event>(ending), kEventStatus, sizeof status,
                                         &status, nullptr);
    return code != 0 ? code : std::min(status, kRunning);
  }
  void wait_for(void* ending) noexcept override {
    const Event event = static_cast<Event>(ending);
    api_.clWaitForEvents(1, &event);
  }
  std::string text_of_error(int code) const override { return error_name(code); }

  void copy_within(const Place& to, const Place& from, std::size_t bytes) override {
    command("clEnqueueCopyBuffer", [&](CommandQueue line, Event* event) {
      return api_.clEnqueueCopyBuffer(line, mem(from), mem(to), from.offset, to.offset, bytes, 0,
                                      nullptr, event);
    });
  }
  void copy_in(const Place& to, const void* from, std::size_t bytes) override {
    command("clEnqueueWriteBuffer", [&](CommandQueue line, Event* event) {
      return api_.clEnqueueWriteBuffer(line, mem(to), kFalse, to.offset, bytes, from, 0, nullptr,
                                       event);
    });
  }
  void copy_out(void* to, const Place& from, std::size_t bytes) override {
    command("clEnqueueReadBuffer", [&](CommandQueue line, Event* event) {
      return api_.clEnqueueReadBuffer(line, mem(from), kFalse, from.offset, bytes, to, 0, nullptr,
                                      event);
    });
  }
  void fill_place(const Place& to, std::uint8_t byte, std::size_t bytes) override {
    command("clEnqueueFillBuffer", [&](CommandQueue line, Event* event) {
      return api_.clEnqueueFillBuffer(line, mem(to), &byte, 1, to.offset, bytes, 0, nullptr, event);
    });
  }

 private:
  static Mem mem(const Place& place) { return static_cast<Mem>(place.value); }

  // Calls call(queue, event), which enqueues one command.
  template <class Call>
  Int call_driver(Ending& ending, Call call) {
    Event event = nullptr;
    const Int code = call(queue_, &event);
    if (code != 0) return code;
    ending = Ending(event, [&api = api_](void* e) { api.clReleaseEvent(static_cast<Event>(e)); });
    api_.clFlush(queue_);
    return 0;
  }
  template <class Call>
  void command(const char* what, Call call, std::shared_ptr<const std::string> step = nullptr) {
    enqueue(what, std::move(step), [&](Ending& ending) { return call_driver(ending, call); });
  }

  void release() {
    if (queue_ != nullptr) api_.clReleaseCommandQueue(queue_);
    if (context_ != nullptr) api_.clReleaseContext(context_);
  }

  // Drivers that take the processor's memory give more than there is.
  bool count_in(std::size_t bytes) noexcept {
    std::size_t before = obtained_;
    do {
      if (before + bytes > facts_.memory_bytes) return false;
    } while (!obtained_.compare_exchange_weak(before, before + bytes));
    return true;
  }

  // A buffer whose memory is there: drivers may put that off until a command needs it.
  Mem allocate(std::size_t bytes) noexcept {
    Int code = 0;
    const Mem mem = api_.clCreateBuffer(context_, kMemReadWrite, bytes, nullptr, &code);
    if (code != 0) return nullptr;
    code = api_.clEnqueueMigrateMemObjects(queue_, 1, &mem, kContentUndefined, 0, nullptr, nullptr);
    if (code == 0) return mem;
    api_.clReleaseMemObject(mem);
    return nullptr;
  }

  ProgramId build(const KernelText& text, std::span<const std::byte> binary);

  const Api& api_;
  const DeviceId device_;
  const DeviceFacts facts_;
  Context context_ = nullptr;
  CommandQueue queue_ = nullptr;
  std::atomic<std::size_t> obtained_{0};  // bytes
};

ProgramId Backend::build(const KernelText& text, std::span<const std::byte> binary) {
  Int code = 0;
  ProgramId program = nullptr;
  if (binary.empty()) {
    const std::string whole = kOpenClPrelude + first_line(text) + text.text;
    const char* first = whole.c_str();
    const std::size_t length = whole.size();
    program = api_.clCreateProgramWithSource(context_, 1, &first, &length, &code);
  } else {
    const auto* first = reinterpret_cast<const unsigned char*>(binary.data());
    const std::size_t length = binary.size();
    program =
        api_.clCreateProgramWithBinary(context_, 1, &device_, &length, &first, nullptr, &code);
  }
  if (code == 0)
    code = api_.clBuildProgram(program, 1, &device_, facts_.options.c_str(), nullptr, nullptr);
  if (code == 0) return program;
  std::string complaint = error_name(code);
  if (program != nullptr) {
    complaint = first_complaint(text_of([&](std::size_t bytes, void* data, std::size_t* needed) {
                                  return api_.clGetProgramBuildInfo(program, device_, kBuildLog,
                                                                    bytes, data, needed);
                                }),
                                complaint);
    api_.clReleaseProgram(program);
  }
  throw refused(text, binary, complaint);
}

KernelProgram Backend::load(const KernelText& text, std::span<const std::byte> binary) {
  check();
  const QuietSignals quiet;  // of compilers
  const ProgramId program = build(text, binary);
  const auto kernels = std::make_shared<Kernels>(api_, program, this);
  for (const std::string& name : text.kernels) {
    Int code = 0;
    Kernels::Entry& entry = kernels->entries.emplace_back();
    entry.name = name;
    entry.kernel = api_.clCreateKernel(program, name.c_str(), &code);
    if (code != 0) throw refused(text, binary, "no kernel '" + name + "': " + error_name(code));
    std::array<std::size_t, 3> items{};
    api_.clGetKernelInfo(entry.kernel, kKernelParameters, sizeof entry.parameters,
                         &entry.parameters, nullptr);
    api_.clGetKernelWorkGroupInfo(entry.kernel, device_, kKernelGroupSize, sizeof items,
                                  items.data(), nullptr);
    entry.items = items[0];
  }
  return kernels;
}

void Backend::launch(const Launch& launch) {
  auto& entry = kernels_of<Kernels>(launch).entries.at(launch.kernel);
  std::array<std::size_t, 3> all{};
  for (std::size_t d = 0; d < 3; ++d) all[d] = static_cast<std::size_t>(launch.groups[d]);
  const auto items = static_cast<std::size_t>(launch.items);
  const std::array<std::size_t, 3> group{items, 1, 1};
  all[0] *= items;
  const std::vector<KernelArgument> values = parameters_of(launch);
  if (values.size() != entry.parameters || items != entry.items) {
    refuse_launch(entry.name, values.size(), entry.parameters, launch.items, entry.items);
  }
  if (all[0] == 0 || all[1] == 0 || all[2] == 0) return check();
  const auto run = [&](CommandQueue line, Event* event) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Int code =
          api_.clSetKernelArg(entry.kernel, static_cast<UInt>(i), 8, &values[i].integer);
      if (code != 0) return code;
    }
    return api_.clEnqueueNDRangeKernel(line, entry.kernel, 3, nullptr, all.data(), group.data(), 0,
                                       nullptr, event);
  };
  // The compiler runs in a thread of the driver and takes signals, so that the launch waits.
  const bool compiles = facts_.compiles_late && !entry.has_run;
  if (!compiles) return command("clEnqueueNDRangeKernel", run, launch.step);
  const QuietSignals quiet;
  command("clEnqueueNDRangeKernel", run, launch.step);
  wait_uninterrupted(mark());
  entry.has_run = true;
}

}  // namespace

std::vector<std::shared_ptr<DeviceBackend>> backends(const Api& api, std::string& why) {
  const QuietSignals quiet;  // of drivers, which the loader loads
  UInt n = 0;
  std::vector<PlatformId> platforms;
  if (api.clGetPlatformIDs(0, nullptr, &n) == 0) platforms.resize(n);
  if (n > 0) api.clGetPlatformIDs(n, platforms.data(), nullptr);
  std::vector<std::pair<PlatformId, DeviceId>> found;
  for (const PlatformId platform : platforms) {
    n = 0;
    if (api.clGetDeviceIDs(platform, kDeviceTypeAll, 0, nullptr, &n) != 0 || n == 0) continue;
    std::vector<DeviceId> devices(n);
    api.clGetDeviceIDs(platform, kDeviceTypeAll, n, devices.data(), nullptr);
    for (const DeviceId device : devices) found.emplace_back(platform, device);
  }
  std::stable_partition(found.begin(), found.end(), [&](const auto& one) {
    return (device_value<Bits>(api, one.second, kDeviceType) & kDeviceTypeCpu) == 0;
  });
  std::vector<std::shared_ptr<DeviceBackend>> made;
  why = "no OpenCL device. Try pocl-opencl-icd";
  for (const auto& [platform, device] : found) {
    try {
      made.push_back(std::make_shared<Backend>(api, platform, device,
                                               "opencl:" + std::to_string(made.size())));
    } catch (const DeviceError& error) {
      why = error.what();
    }
  }
  return made;
}

}  // namespace palimpsest::opencl
