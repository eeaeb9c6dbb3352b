// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/device/messages.hpp"
#include "palimpsest/device/queued_backend.hpp"
#include "palimpsest/device/quiet_signals.hpp"

namespace palimpsest::cuda {
namespace {

constexpr const char* kOptions = "-fmad=false";

// The context of a device, current for the calling thread.
class Current {
 public:
  Current(const Driver& driver, Context context) : driver_(driver) {
    driver_.cuCtxPushCurrent(context);
  }
  ~Current() {
    Context ignored = nullptr;
    driver_.cuCtxPopCurrent(&ignored);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Driver& driver_;
};

int attribute(const Driver& driver, DeviceId device, Attribute what) {
  int value = 0;
  driver.cuDeviceGetAttribute(&value, what, device);
  return value;
}

DeviceFacts facts_of(const Driver& driver, DeviceId device) {
  DeviceFacts facts;
  char name[256] = "";
  driver.cuDeviceGetName(name, sizeof name, device);
  facts.name = name;
  int version = 0;
  driver.cuDriverGetVersion(&version);
  facts.driver = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  facts.isa =
      fmt::format("sm_{}{}", attribute(driver, device, kMajor), attribute(driver, device, kMinor));
  facts.options = kOptions;
  std::size_t bytes = 0;
  driver.cuDeviceTotalMem(&bytes, device);
  facts.memory_bytes = bytes;
  facts.largest_allocation = bytes;
  facts.cache_bytes = static_cast<std::uint64_t>(attribute(driver, device, kCacheSize));
  facts.local_bytes = static_cast<std::uint64_t>(attribute(driver, device, kMaxLocalMemory));
  facts.groups = attribute(driver, device, kMultiprocessors);
  facts.has_float64 = true;
  return facts;
}

Address address(const void* p) { return reinterpret_cast<Address>(p); }

// A module in a context. Commands that have been enqueued keep it.
struct LoadedModule {
  LoadedModule(const Driver& functions, Context in) : driver(functions), context(in) {}
  ~LoadedModule() {
    if (process_generation() != generation || module == nullptr) return;
    const Current current(driver, context);
    driver.cuModuleUnload(module);
  }
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const Driver& driver;
  Context context;
  Module module = nullptr;
  unsigned generation = process_generation();
};

struct Kernels final : LoadedKernels {
  struct Entry {
    Function function = nullptr;
    std::string name;
    std::size_t parameters = 0;  // 0: the driver does not tell
    int most_items = 0;
  };
  std::vector<std::byte> binary() const override { return bytes; }

  const DeviceBackend* of = nullptr;
  std::vector<std::byte> bytes;
  std::shared_ptr<LoadedModule> module;
  std::vector<Entry> entries;
};

class Backend final : public QueuedBackend {
 public:
  Backend(const Driver& driver, DeviceId device, std::string name)
      : QueuedBackend(std::move(name)),
        driver_(driver),
        device_(device),
        facts_(facts_of(driver, device)) {
    Result code = driver_.cuDevicePrimaryCtxRetain(&context_, device_);
    if (code == 0) {
      const Current current(driver_, context_);
      for (Stream& stream : streams_) {
        if (code == 0) code = driver_.cuStreamCreate(&stream, kNonBlocking);
      }
    }
    if (code == 0) return;
    release();
    throw DeviceError(
        fmt::format("[{}] cannot be used: {}", device_name(), error_name(driver_, code)));
  }
  ~Backend() override {
    if (is_forked()) return;
    {
      const Current current(driver_, context_);
      for (const Stream stream : streams_) driver_.cuStreamSynchronize(stream);
      forget_commands();
      for (const Freed& freed : freed_) driver_.cuMemFree(address(freed.first));
      blocks_.for_each(
          [this](std::byte* first, std::size_t, void*) { driver_.cuMemFree(address(first)); });
    }
    release();
  }

  const DeviceFacts& facts() const override { return facts_; }

  std::byte* obtain(std::size_t bytes) noexcept override {
    if (bytes == 0 || bytes > facts_.largest_allocation || is_forked()) return nullptr;
    const Current current(driver_, context_);
    free_passed();
    Address address = 0;
    if (driver_.cuMemAlloc(&address, bytes) != 0) return nullptr;
    std::byte* const first = reinterpret_cast<std::byte*>(address);
    if (blocks_.add(first, bytes, first)) return first;
    driver_.cuMemFree(address);
    return nullptr;
  }

  // The driver waits for all commands when it frees, so memory is freed when they have run.
  void give_back(std::byte* first, std::size_t bytes) noexcept override {
    if (first == nullptr || is_forked() || !blocks_.take(first, bytes)) return;
    try {
      Freed freed{first, {}};
      for (std::size_t q = 0; q < kQueues; ++q) freed.marks[q] = mark(static_cast<Queue>(q));
      const std::lock_guard guard(freed_mutex_);
      freed_.push_back(freed);
    } catch (const std::exception&) {  // lost: all memory is
    }
  }

  std::byte* obtain_staging(std::size_t bytes) noexcept override {
    if (is_forked()) return nullptr;
    const Current current(driver_, context_);
    void* memory = nullptr;
    if (driver_.cuMemAllocHost(&memory, bytes) != 0) return nullptr;
    auto* const first = static_cast<std::byte*>(memory);
    if (staging_.add(first, bytes, {})) return first;
    driver_.cuMemFreeHost(memory);
    return nullptr;
  }
  void give_back_staging(std::byte* first, std::size_t bytes) noexcept override {
    if (first == nullptr || is_forked() || !staging_.take(first, bytes)) return;
    if (is_lost()) return;  // commands that nobody can wait for may still use it
    const Current current(driver_, context_);
    driver_.cuMemFreeHost(first);
  }

  KernelProgram load(const KernelText& text, std::span<const std::byte> binary) override;
  void launch(Queue queue, const Launch& launch) override;

 protected:
  int status_of(void* ending) noexcept override {
    const Current current(driver_, context_);
    const Result code = driver_.cuEventQuery(static_cast<Event>(ending));
    return code == kNotReady ? kRunning : code == kRunning ? kOutOfMemory : code;
  }
  void wait_for(void* ending) noexcept override {
    const Current current(driver_, context_);
    driver_.cuEventSynchronize(static_cast<Event>(ending));
  }
  int enqueue_wait(Queue queue, void* other, Ending& ending) override {
    return call_driver(queue, ending, [&](Stream stream) {
      return driver_.cuStreamWaitEvent(stream, static_cast<Event>(other), 0);
    });
  }
  std::string text_of_error(int code) const override { return error_name(driver_, code); }

  void copy_within(Queue queue, const Place& to, const Place& from, std::size_t bytes) override {
    command(queue, "cuMemcpyDtoDAsync", [&](Stream stream) {
      return driver_.cuMemcpyDtoDAsync(address_of(to), address_of(from), bytes, stream);
    });
  }
  void copy_in(Queue queue, const Place& to, const void* from, std::size_t bytes) override {
    command(queue, "cuMemcpyHtoDAsync", [&](Stream stream) {
      return driver_.cuMemcpyHtoDAsync(address_of(to), from, bytes, stream);
    });
  }
  void copy_out(Queue queue, void* to, const Place& from, std::size_t bytes) override {
    command(queue, "cuMemcpyDtoHAsync", [&](Stream stream) {
      return driver_.cuMemcpyDtoHAsync(to, address_of(from), bytes, stream);
    });
  }
  void fill_place(Queue queue, const Place& to, std::uint8_t byte, std::size_t bytes) override {
    command(queue, "cuMemsetD8Async", [&](Stream stream) {
      return driver_.cuMemsetD8Async(address_of(to), byte, bytes, stream);
    });
  }

 private:
  // The handle of an allocation is its address.
  static Address address_of(const Place& place) { return address(place.first) + place.offset; }
  struct Freed {
    std::byte* first;
    std::array<Mark, kQueues> marks;
  };

  // Calls call(stream), which enqueues one command, and then an event.
  template <class Call>
  Result call_driver(Queue queue, Ending& ending, Call call,
                     std::shared_ptr<LoadedModule> keeps = nullptr) {
    const Current current(driver_, context_);
    const Stream stream = streams_[static_cast<std::size_t>(queue)];
    Event event = nullptr;
    Result code = driver_.cuEventCreate(&event, kWithoutTime);
    if (code != 0) return code;
    ending = Ending(event, [this, keeps = std::move(keeps)](void* e) {
      const Current of_device(driver_, context_);
      driver_.cuEventDestroy(static_cast<Event>(e));
    });
    code = call(stream);
    return code != 0 ? code : driver_.cuEventRecord(event, stream);
  }
  template <class Call>
  void command(Queue queue, const char* what, Call call,
               const std::shared_ptr<LoadedModule>& keeps = nullptr) {
    enqueue(queue, what, [&](Ending& ending) { return call_driver(queue, ending, call, keeps); });
  }

  void free_passed() noexcept {
    const std::lock_guard guard(freed_mutex_);
    std::erase_if(freed_, [this](const Freed& freed) {
      try {
        for (std::size_t q = 0; q < kQueues; ++q) {
          if (!passed(static_cast<Queue>(q), freed.marks[q])) return false;
        }
      } catch (const Error&) {
        return true;
      }
      driver_.cuMemFree(address(freed.first));
      return true;
    });
  }

  void release() {
    if (context_ == nullptr) return;
    {
      const Current current(driver_, context_);
      for (const Stream stream : streams_) {
        if (stream != nullptr) driver_.cuStreamDestroy(stream);
      }
    }
    driver_.cuDevicePrimaryCtxRelease(device_);
  }

  const Driver& driver_;
  const DeviceId device_;
  const DeviceFacts facts_;
  Context context_ = nullptr;
  std::array<Stream, kQueues> streams_{};
  Mutex freed_mutex_;
  std::deque<Freed> freed_;
};

KernelProgram Backend::load(const KernelText& text, std::span<const std::byte> binary) {
  check();
  const auto kernels = std::make_shared<Kernels>();
  kernels->of = this;
  kernels->bytes = binary.empty() ? compile(text, facts_.isa, device_name())
                                  : std::vector<std::byte>(binary.begin(), binary.end());
  const QuietSignals quiet;  // of drivers that compile
  const Current current(driver_, context_);
  kernels->module = std::make_shared<LoadedModule>(driver_, context_);
  Result code = driver_.cuModuleLoadData(&kernels->module->module, kernels->bytes.data());
  if (code != 0) throw refused(text, binary, error_name(driver_, code));
  for (const std::string& name : text.kernels) {
    Kernels::Entry& entry = kernels->entries.emplace_back();
    entry.name = name;
    code = driver_.cuModuleGetFunction(&entry.function, kernels->module->module, name.c_str());
    if (code != 0) {
      throw refused(text, binary, "no kernel '" + name + "': " + error_name(driver_, code));
    }
    driver_.cuFuncGetAttribute(&entry.most_items, kMaxItems, entry.function);
    if (driver_.cuFuncGetParamInfo == nullptr) continue;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    while (driver_.cuFuncGetParamInfo(entry.function, entry.parameters, &offset, &bytes) == 0) {
      ++entry.parameters;
    }
  }
  return kernels;
}

void Backend::launch(Queue queue, const Launch& launch) {
  const Kernels& kernels = kernels_of<Kernels>(launch);
  const Kernels::Entry& entry = kernels.entries.at(launch.kernel);
  std::vector<KernelArgument> values = parameters_of(launch);
  if ((entry.parameters != 0 && values.size() != entry.parameters) ||
      launch.items > entry.most_items) {
    refuse_launch(entry.name, values.size(), entry.parameters, launch.items,
                  static_cast<std::size_t>(entry.most_items));
  }
  if (std::find(launch.groups.begin(), launch.groups.end(), 0) != launch.groups.end()) {
    return check();
  }
  std::vector<void*> pointers;
  pointers.reserve(values.size());
  for (KernelArgument& value : values) pointers.push_back(&value.integer);
  command(
      queue, "cuLaunchKernel",
      [&](Stream stream) {
        return driver_.cuLaunchKernel(
            entry.function, static_cast<unsigned>(launch.groups[0]),
            static_cast<unsigned>(launch.groups[1]), static_cast<unsigned>(launch.groups[2]),
            static_cast<unsigned>(launch.items), 1, 1, 0, stream, pointers.data(), nullptr);
      },
      kernels.module);
}

}  // namespace

std::vector<std::shared_ptr<DeviceBackend>> backends(const Driver& driver, std::string& why) {
  const QuietSignals quiet;  // of drivers, which start threads
  int n = 0;
  why = "no CUDA device here";
  std::vector<std::shared_ptr<DeviceBackend>> made;
  if (driver.cuDeviceGetCount(&n) != 0) return made;
  for (int i = 0; i < n; ++i) {
    DeviceId device = 0;
    if (driver.cuDeviceGet(&device, i) != 0) continue;
    try {
      made.push_back(
          std::make_shared<Backend>(driver, device, "cuda:" + std::to_string(made.size())));
    } catch (const DeviceError& error) {
      why = error.what();
    }
  }
  return made;
}

}  // namespace palimpsest::cuda
