// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/opencl/opencl_backend.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/interrupt.hpp"
#include "palimpsest/device/messages.hpp"
#include "palimpsest/device/quiet_signals.hpp"
#include "palimpsest/device/text/preludes.hpp"

namespace palimpsest::opencl {
namespace {

constexpr std::size_t kMostInFlight = 1024;
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
  facts.has_float64 = device_value<Bits>(api, device, kDeviceDoubleConfig) != 0;
  return facts;
}

// A buffer and a place in it.
struct Place {
  Mem mem = nullptr;
  std::int64_t offset = 0;
};

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

class Backend final : public DeviceBackend {
 public:
  Backend(const Api& api, PlatformId platform, DeviceId device, std::string name)
      : api_(api),
        device_(device),
        name_(std::move(name)),
        facts_(facts_of(api, platform, device)),
        compiles_late_((device_value<Bits>(api, device, kDeviceType) & kDeviceTypeCpu) != 0) {
    Int code = 0;
    context_ = api_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code);
    if (code == 0) {
      for (Line& line : lines_) {
        line.queue = api_.clCreateCommandQueue(context_, device_, 0, &code);
        if (code != 0) break;
      }
    }
    if (code == 0) return;
    release();
    throw DeviceError(fmt::format("[{}] cannot be used: {}", name_, error_name(code)));
  }
  ~Backend() override {
    if (is_forked()) return;
    for (Line& line : lines_) {
      if (line.queue != nullptr) api_.clFinish(line.queue);
      for (const Event event : line.running) api_.clReleaseEvent(event);
    }
    for (const auto& [first, block] : blocks_) {
      api_.clReleaseMemObject(block.mem);
      ::munmap(first, whole_pages(block.bytes));
    }
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
      try {
        const std::unique_lock guard(blocks_mutex_);
        blocks_.emplace(first, Block{bytes, mem});
        return first;
      } catch (const std::bad_alloc&) {
        api_.clReleaseMemObject(mem);
      }
    }
    if (space != MAP_FAILED) ::munmap(space, whole_pages(bytes));
    obtained_ -= bytes;
    return nullptr;
  }

  void give_back(std::byte* first, std::size_t bytes) noexcept override {
    if (first == nullptr || is_forked()) return;
    Mem mem = nullptr;
    {
      const std::unique_lock guard(blocks_mutex_);
      const auto found = blocks_.find(first);
      if (found == blocks_.end() || found->second.bytes != bytes) return;
      mem = found->second.mem;
      blocks_.erase(found);
    }
    api_.clReleaseMemObject(mem);  // once the commands that use it have run
    obtained_ -= bytes;
    ::munmap(first, whole_pages(bytes));
  }

  std::byte* obtain_staging(std::size_t bytes) noexcept override {
    auto* const first = static_cast<std::byte*>(
        ::operator new (bytes, std::align_val_t{kStagingAlignment}, std::nothrow));
    if (first == nullptr) return nullptr;
    try {
      const std::unique_lock guard(blocks_mutex_);
      staging_.emplace(first, bytes);
      return first;
    } catch (const std::bad_alloc&) {
      ::operator delete (first, std::align_val_t{kStagingAlignment});
      return nullptr;
    }
  }
  void give_back_staging(std::byte* first, std::size_t) noexcept override {
    {
      const std::unique_lock guard(blocks_mutex_);
      staging_.erase(first);
    }
    ::operator delete (first, std::align_val_t{kStagingAlignment});
  }

  KernelProgram load(const KernelText& text, std::span<const std::byte> binary) override;
  void launch(Queue queue, const Launch& launch) override;

  void copy(Queue queue, void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return check();
    const std::optional<Place> target = find(to, bytes);
    const std::optional<Place> source = find(from, bytes);
    if (target && source) {
      enqueue(queue, "clEnqueueCopyBuffer", [&](CommandQueue line, Event* event) {
        return api_.clEnqueueCopyBuffer(line, source->mem, target->mem, offset(*source),
                                        offset(*target), bytes, 0, nullptr, event);
      });
    } else if (target && is_staging(from, bytes)) {
      enqueue(queue, "clEnqueueWriteBuffer", [&](CommandQueue line, Event* event) {
        return api_.clEnqueueWriteBuffer(line, target->mem, kFalse, offset(*target), bytes, from, 0,
                                         nullptr, event);
      });
    } else if (source && is_staging(to, bytes)) {
      enqueue(queue, "clEnqueueReadBuffer", [&](CommandQueue line, Event* event) {
        return api_.clEnqueueReadBuffer(line, source->mem, kFalse, offset(*source), bytes, to, 0,
                                        nullptr, event);
      });
    } else {
      throw InternalError(outside());
    }
  }

  void fill(Queue queue, void* to, std::uint8_t byte, std::size_t bytes) override {
    if (bytes == 0) return check();
    const Place target = place_of(to, bytes);
    enqueue(queue, "clEnqueueFillBuffer", [&](CommandQueue line, Event* event) {
      return api_.clEnqueueFillBuffer(line, target.mem, &byte, 1, offset(target), bytes, 0, nullptr,
                                      event);
    });
  }

  Mark mark(Queue queue) override {
    check();
    const std::lock_guard guard(order_);
    const Line& line = line_of(queue);
    return line.done + line.running.size();
  }

  void wait(Queue queue, Queue marked, Mark mark) override {
    if (queue == marked) return check();
    const Event event = running_at(marked, mark);
    if (event == nullptr) return;
    const Held held(api_, event);
    enqueue(queue, "clEnqueueBarrierWithWaitList", [&](CommandQueue line, Event* own) {
      return api_.clEnqueueBarrierWithWaitList(line, 1, &event, own);
    });
  }

  bool passed(Queue queue, Mark mark) override {
    check();
    const std::lock_guard guard(order_);
    settle(line_of(queue));
    return line_of(queue).done >= mark;
  }

  void wait_on_host(Queue queue, Mark mark) override;

  bool owns(const void* address) const noexcept override { return find(address, 1).has_value(); }

 private:
  struct Block {
    std::size_t bytes = 0;
    Mem mem = nullptr;
  };
  // A queue with the events of its commands from number done + 1 on.
  struct Line {
    CommandQueue queue = nullptr;
    std::deque<Event> running;
    Mark done = 0;
  };
  // A reference to an event.
  struct Held {
    Held(const Api& functions, Event held) : api(functions), event(held) {}
    ~Held() { api.clReleaseEvent(event); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    const Api& api;
    Event event;
  };

  static std::size_t offset(const Place& place) { return static_cast<std::size_t>(place.offset); }
  Line& line_of(Queue queue) { return lines_[static_cast<std::size_t>(queue)]; }
  bool is_forked() const noexcept { return process_generation() != generation_; }

  void release() {
    for (const Line& line : lines_) {
      if (line.queue != nullptr) api_.clReleaseCommandQueue(line.queue);
    }
    if (context_ != nullptr) api_.clReleaseContext(context_);
  }

  // Throws if no command can be enqueued any more.
  void check() {
    if (is_forked()) throw DeviceError(forked_text(name_));
    if (!is_lost_.load(std::memory_order_acquire)) return;
    const std::lock_guard guard(order_);
    throw DeviceError(lost_);
  }
  // Precondition: order_ is held.
  [[noreturn]] void lose(const char* what, Int code) {
    if (lost_.empty()) {
      lost_ = fmt::format("[{}] lost after {}: {}. Try to restart the process", name_, what,
                          error_name(code));
    }
    is_lost_.store(true, std::memory_order_release);
    throw DeviceError(lost_);
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
    code = api_.clEnqueueMigrateMemObjects(line_of(Queue::work).queue, 1, &mem, kContentUndefined,
                                           0, nullptr, nullptr);
    if (code == 0) return mem;
    api_.clReleaseMemObject(mem);
    return nullptr;
  }

  // The place of `bytes` bytes. The end of an allocation is a place of 0 bytes.
  std::optional<Place> find(const void* address, std::size_t bytes) const noexcept {
    std::byte* const at = static_cast<std::byte*>(const_cast<void*>(address));
    const std::shared_lock guard(blocks_mutex_);
    auto found = blocks_.upper_bound(at);
    if (found == blocks_.begin()) return std::nullopt;
    --found;
    const auto first = reinterpret_cast<std::uintptr_t>(found->first);
    const std::uintptr_t behind = reinterpret_cast<std::uintptr_t>(at) - first;
    if (behind > found->second.bytes || bytes > found->second.bytes - behind) return std::nullopt;
    return Place{found->second.mem, static_cast<std::int64_t>(behind)};
  }
  Place place_of(const void* address, std::size_t bytes) const {
    if (const std::optional<Place> place = find(address, bytes)) return *place;
    throw InternalError(outside());
  }
  bool is_staging(const void* address, std::size_t bytes) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::shared_lock guard(blocks_mutex_);
    auto found = staging_.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
    if (found == staging_.begin()) return false;
    --found;
    const std::uintptr_t behind = at - reinterpret_cast<std::uintptr_t>(found->first);
    return behind <= found->second && bytes <= found->second - behind;
  }
  std::string outside() const {
    return fmt::format("[{}] an address outside of its memory and of its staging memory", name_);
  }

  // Removes the commands that have run. Precondition: order_ is held.
  void settle(Line& line) {
    while (!line.running.empty()) {
      Int status = 1;
      const Int code =
          api_.clGetEventInfo(line.running.front(), kEventStatus, sizeof status, &status, nullptr);
      if (code != 0) lose("clGetEventInfo", code);
      if (status < 0) lose("a command", status);
      if (status != static_cast<Int>(kComplete)) return;
      api_.clReleaseEvent(line.running.front());
      line.running.pop_front();
      ++line.done;
    }
  }

  // Calls call(queue, event), which enqueues one command.
  template <class Call>
  void enqueue(Queue queue, const char* what, Call call) {
    for (;;) {
      check();
      Event oldest = nullptr;
      {
        const std::lock_guard guard(order_);
        std::size_t in_flight = 0;
        const Line* longest = &lines_[0];
        for (Line& line : lines_) {
          settle(line);
          in_flight += line.running.size();
          if (line.running.size() > longest->running.size()) longest = &line;
        }
        if (in_flight < kMostInFlight) {
          Line& line = line_of(queue);
          line.running.push_back(nullptr);
          const Int code = call(line.queue, &line.running.back());
          if (code == 0) {
            api_.clFlush(line.queue);
            return;
          }
          line.running.pop_back();
          lose(what, code);
        }
        oldest = longest->running.front();
        api_.clRetainEvent(oldest);
      }
      const Held held(api_, oldest);
      api_.clWaitForEvents(1, &oldest);  // a failure is seen by settle()
    }
  }

  // The event of a command, which the caller releases; null if it has run.
  Event running_at(Queue queue, Mark mark) {
    check();
    const std::lock_guard guard(order_);
    Line& line = line_of(queue);
    settle(line);
    if (mark <= line.done) return nullptr;
    const std::size_t position = mark - line.done - 1;
    if (position >= line.running.size()) {
      throw InternalError(fmt::format("[{}] mark {} of a queue of {} commands", name_, mark,
                                      line.done + line.running.size()));
    }
    api_.clRetainEvent(line.running[position]);
    return line.running[position];
  }

  void wait_uninterrupted(Queue queue, Mark mark);
  ProgramId build(const KernelText& text, std::span<const std::byte> binary);

  const Api& api_;
  const DeviceId device_;
  const std::string name_;
  const DeviceFacts facts_;
  const unsigned generation_ = process_generation();
  // Drivers of processors compile a kernel once more at its first launch, for its number of items,
  // and in a thread of theirs. Their compiler then takes signals, so that launch waits.
  const bool compiles_late_;
  Context context_ = nullptr;

  Mutex order_;  // of commands and of the arguments of kernels
  std::array<Line, kQueues> lines_;
  std::string lost_;
  std::atomic<bool> is_lost_{false};

  std::atomic<std::size_t> obtained_{0};  // bytes
  mutable SharedMutex blocks_mutex_;
  std::map<std::byte*, Block> blocks_;
  std::map<std::byte*, std::size_t> staging_;  // bytes
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
  throw DeviceError(binary.empty() ? does_not_compile(text.name, name_, complaint)
                                   : foreign_binary(text.name, name_, complaint));
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
    if (code != 0) {
      const std::string complaint = "no kernel '" + name + "': " + error_name(code);
      throw DeviceError(binary.empty() ? does_not_compile(text.name, name_, complaint)
                                       : foreign_binary(text.name, name_, complaint));
    }
    std::array<std::size_t, 3> items{};
    api_.clGetKernelInfo(entry.kernel, kKernelParameters, sizeof entry.parameters,
                         &entry.parameters, nullptr);
    api_.clGetKernelWorkGroupInfo(entry.kernel, device_, kKernelGroupSize, sizeof items,
                                  items.data(), nullptr);
    entry.items = items[0];
  }
  return kernels;
}

void Backend::launch(Queue queue, const Launch& launch) {
  const auto* const kernels = dynamic_cast<const Kernels*>(launch.program);
  if (kernels == nullptr || kernels->of != this) {
    throw InternalError(fmt::format("[{}] kernels of another device", name_));
  }
  auto& entry = kernels->entries.at(launch.kernel);
  std::array<std::size_t, 3> all{};
  for (std::size_t d = 0; d < 3; ++d) all[d] = static_cast<std::size_t>(launch.groups[d]);
  const auto items = static_cast<std::size_t>(launch.items);
  const std::array<std::size_t, 3> group{items, 1, 1};
  all[0] *= items;
  // Parameters of 8 bytes each.
  std::vector<KernelArgument> values;
  values.reserve(2 * launch.arguments.size());
  for (const KernelArgument& argument : launch.arguments) {
    if (argument.kind != KernelArgument::Kind::address) {
      values.push_back(argument);
      continue;
    }
    const Place place = argument.address == nullptr ? Place{} : place_of(argument.address, 0);
    values.push_back(KernelArgument::of(static_cast<const void*>(place.mem)));
    values.push_back(KernelArgument::of(place.offset));
  }
  if (values.size() != entry.parameters || items != entry.items) {
    throw InternalError(
        fmt::format("[{}] kernel {}: got {} parameters and {} items, expected {} "
                    "and {}",
                    name_, entry.name, values.size(), items, entry.parameters, entry.items));
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
  if (!compiles_late_ || entry.has_run) return enqueue(queue, "clEnqueueNDRangeKernel", run);
  const QuietSignals quiet;
  enqueue(queue, "clEnqueueNDRangeKernel", run);
  wait_uninterrupted(queue, mark(queue));
  entry.has_run = true;
}

void Backend::wait_uninterrupted(Queue queue, Mark mark) {
  while (const Event event = running_at(queue, mark)) {
    const Held held(api_, event);
    api_.clWaitForEvents(1, &event);  // a failure is seen by running_at()
  }
}

void Backend::wait_on_host(Queue queue, Mark mark) {
  if (!has_interrupt_check()) return wait_uninterrupted(queue, mark);
  constexpr std::chrono::microseconds kLongestPause{1000};
  std::chrono::microseconds pause{0};
  while (const Event event = running_at(queue, mark)) {
    const Held held(api_, event);
    check_interrupt();
    if (pause.count() < 64) {
      std::this_thread::yield();
      pause += std::chrono::microseconds(1);
    } else {
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
  }
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
