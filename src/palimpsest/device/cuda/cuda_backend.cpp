// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
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

// A graph of launches in a context. Commands that have been enqueued keep it.
struct LoadedGraph {
  LoadedGraph(const Driver& functions, Context in) : driver(functions), context(in) {}
  ~LoadedGraph() {
    if (process_generation() != generation || exec == nullptr) return;
    const Current current(driver, context);
    driver.cuGraphExecDestroy(exec);
  }
  LoadedGraph(const LoadedGraph&) = delete;
  LoadedGraph& operator=(const LoadedGraph&) = delete;

  const Driver& driver;
  Context context;
  GraphExec exec = nullptr;
  std::vector<std::shared_ptr<void>> modules = {};
  unsigned generation = process_generation();
};

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
      code = driver_.cuStreamCreate(&stream_, kNonBlocking);
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
      driver_.cuStreamSynchronize(stream_);
      forget_commands();
      for (const Freed& freed : freed_) freed.free();
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
      free_later([this, first] { driver_.cuMemFree(address(first)); });
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

  std::function<void()> adopt(std::byte* first, std::size_t bytes,
                              std::function<void()> deleter) override {
    free_passed();
    if (blocks_.find(first, 0)) return deleter;
    const std::lock_guard guard(foreign_mutex_);
    foreign_.push_back({first, bytes});
    return [this, first, bytes, deleter = std::move(deleter)] {
      {
        const std::lock_guard lock(foreign_mutex_);
        const auto found = std::ranges::find_if(
            foreign_, [&](const Foreign& one) { return one.first == first && one.bytes == bytes; });
        foreign_.erase(found);
      }
      try {
        free_later(deleter);
      } catch (const DeviceError&) {  // no command will run
        deleter();
      }
    };
  }
  void* stream() const override { return stream_; }
  void wait_for_stream(void* stream) override {
    command("cuStreamWaitEvent", [&](Stream own) {
      return with_event([&](Event event) {
        const Result code = driver_.cuEventRecord(event, static_cast<Stream>(stream));
        return code != 0 ? code : driver_.cuStreamWaitEvent(own, event, 0);
      });
    });
  }
  void let_stream_wait(void* stream) override {
    check();
    const Result code = with_event([&](Event event) {
      const Result recorded = driver_.cuEventRecord(event, stream_);
      return recorded != 0 ? recorded
                           : driver_.cuStreamWaitEvent(static_cast<Stream>(stream), event, 0);
    });
    if (code == 0) return;
    throw DeviceError(fmt::format("[{}] stream: got one that the driver refuses: {}", device_name(),
                                  error_name(driver_, code)));
  }

  KernelProgram load(const KernelText& text, std::span<const std::byte> binary) override;
  void launch(const Launch& launch) override;
  std::unique_ptr<Recording> record(std::span<const RecordedLaunch> launches) override;

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
  std::string text_of_error(int code) const override { return error_name(driver_, code); }

  std::optional<Place> place_of(const void* at, std::size_t bytes) const noexcept override {
    if (const auto found = blocks_.find(at, bytes)) return found;
    auto* const first = static_cast<std::byte*>(const_cast<void*>(at));
    const std::lock_guard guard(foreign_mutex_);
    const bool is_foreign = std::ranges::any_of(foreign_, [&](const Foreign& one) {
      return first >= one.first && first + bytes <= one.first + one.bytes;
    });
    return is_foreign ? std::optional(Place{first, first, 0}) : std::nullopt;
  }
  void copy_within(const Place& to, const Place& from, std::size_t bytes) override {
    command("cuMemcpyDtoDAsync", [&](Stream stream) {
      return driver_.cuMemcpyDtoDAsync(address_of(to), address_of(from), bytes, stream);
    });
  }
  void copy_in(const Place& to, const void* from, std::size_t bytes) override {
    command("cuMemcpyHtoDAsync", [&](Stream stream) {
      return driver_.cuMemcpyHtoDAsync(address_of(to), from, bytes, stream);
    });
  }
  void copy_out(void* to, const Place& from, std::size_t bytes) override {
    command("cuMemcpyDtoHAsync", [&](Stream stream) {
      return driver_.cuMemcpyDtoHAsync(to, address_of(from), bytes, stream);
    });
  }
  void fill_place(const Place& to, std::uint8_t byte, std::size_t bytes) override {
    command("cuMemsetD8Async", [&](Stream stream) {
      return driver_.cuMemsetD8Async(address_of(to), byte, bytes, stream);
    });
  }

 private:
  // The handle of an allocation is its address.
  static Address address_of(const Place& place) { return address(place.first) + place.offset; }
  // A launch as the driver takes it.
  struct Call {
    Function function;
    std::vector<KernelArgument> values;
    std::shared_ptr<void> module;
    std::vector<void*> pointers = {};  // to the values
  };
  Call call_of(const Launch& launch);

  class Recorded final : public Recording {
   public:
    Recorded(Backend& backend, std::shared_ptr<LoadedGraph> graph,
             std::shared_ptr<const std::string> steps)
        : backend_(backend), graph_(std::move(graph)), steps_(std::move(steps)) {}
    void enqueue() override {
      backend_.command(
          "cuGraphLaunch",
          [this](Stream stream) { return graph_->driver.cuGraphLaunch(graph_->exec, stream); },
          graph_, steps_);
    }

   private:
    Backend& backend_;
    std::shared_ptr<LoadedGraph> graph_;
    std::shared_ptr<const std::string> steps_;
  };

  struct Freed {
    std::function<void()> free;
    Mark mark;
  };
  struct Foreign {
    std::byte* first;
    std::size_t bytes;
  };

  // Calls call(stream), which enqueues one command, and then an event.
  template <class Call>
  Result call_driver(Ending& ending, Call call, std::shared_ptr<void> keeps = nullptr) {
    const Current current(driver_, context_);
    Event event = nullptr;
    Result code = driver_.cuEventCreate(&event, kWithoutTime);
    if (code != 0) return code;
    ending = Ending(event, [this, keeps = std::move(keeps)](void* e) {
      const Current of_device(driver_, context_);
      driver_.cuEventDestroy(static_cast<Event>(e));
    });
    code = call(stream_);
    return code != 0 ? code : driver_.cuEventRecord(event, stream_);
  }
  template <class Call>
  void command(const char* what, Call call, const std::shared_ptr<void>& keeps = nullptr,
               std::shared_ptr<const std::string> step = nullptr) {
    enqueue(what, std::move(step),
            [&](Ending& ending) { return call_driver(ending, call, keeps); });
  }

  void free_later(std::function<void()> free) {
    Freed freed{std::move(free), mark()};
    const std::lock_guard guard(freed_mutex_);
    freed_.push_back(std::move(freed));
  }
  // Deleters of others run without the lock: they may come back.
  void free_passed() noexcept {
    std::vector<Freed> passed_ones;
    {
      const std::lock_guard guard(freed_mutex_);
      const auto has_passed = [this](const Freed& freed) {
        try {
          return passed(freed.mark);
        } catch (const Error&) {
          return true;
        }
      };
      const auto first =
          std::stable_partition(freed_.begin(), freed_.end(), std::not_fn(has_passed));
      std::move(first, freed_.end(), std::back_inserter(passed_ones));
      freed_.erase(first, freed_.end());
    }
    for (const Freed& freed : passed_ones) freed.free();
  }

  // Calls call(event) for an event of the driver.
  template <class Call>
  Result with_event(Call call) {
    const Current current(driver_, context_);
    Event event = nullptr;
    const Result code = driver_.cuEventCreate(&event, kWithoutTime);
    if (code != 0) return code;
    const Result end = call(event);
    driver_.cuEventDestroy(event);
    return end;
  }

  void release() {
    if (context_ == nullptr) return;
    {
      const Current current(driver_, context_);
      if (stream_ != nullptr) driver_.cuStreamDestroy(stream_);
    }
    driver_.cuDevicePrimaryCtxRelease(device_);
  }

  const Driver& driver_;
  const DeviceId device_;
  const DeviceFacts facts_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  mutable Mutex foreign_mutex_;
  std::vector<Foreign> foreign_;
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

Backend::Call Backend::call_of(const Launch& launch) {
  const Kernels& kernels = kernels_of<Kernels>(launch);
  const Kernels::Entry& entry = kernels.entries.at(launch.kernel);
  Call call{entry.function, parameters_of(launch), kernels.module};
  if ((entry.parameters != 0 && call.values.size() != entry.parameters) ||
      launch.items > entry.most_items) {
    refuse_launch(entry.name, call.values.size(), entry.parameters, launch.items,
                  static_cast<std::size_t>(entry.most_items));
  }
  for (KernelArgument& value : call.values) call.pointers.push_back(&value.integer);
  return call;
}

void Backend::launch(const Launch& launch) {
  Call call = call_of(launch);
  if (std::ranges::count(launch.groups, 0) > 0) return check();
  command(
      "cuLaunchKernel",
      [&](Stream stream) {
        return driver_.cuLaunchKernel(
            call.function, static_cast<unsigned>(launch.groups[0]),
            static_cast<unsigned>(launch.groups[1]), static_cast<unsigned>(launch.groups[2]),
            static_cast<unsigned>(launch.items), 1, 1, 0, stream, call.pointers.data(), nullptr);
      },
      call.module, launch.step);
}

// `step 0 (Mul) to step 3 (Sum)`.
std::shared_ptr<const std::string> steps_of(std::span<const RecordedLaunch> launches) {
  if (launches.empty()) return nullptr;
  const auto& first = launches.front().launch.step;
  const auto& last = launches.back().launch.step;
  if (first == nullptr || last == nullptr) return nullptr;
  return std::make_shared<const std::string>(*first + " to " + *last);
}

std::unique_ptr<Recording> Backend::record(std::span<const RecordedLaunch> launches) {
  check();
  const Current current(driver_, context_);
  Graph graph = nullptr;
  if (driver_.cuGraphCreate(&graph, 0) != 0) return nullptr;
  const auto made = std::make_shared<LoadedGraph>(driver_, context_);
  std::vector<GraphNode> nodes;
  Result code = 0;
  for (const RecordedLaunch& recorded : launches) {
    Launch launch = recorded.launch;
    launch.arguments = recorded.arguments;
    Call call = call_of(launch);
    std::vector<GraphNode> after;
    for (const std::size_t i : recorded.after) after.push_back(nodes.at(i));
    KernelNode node{call.function,
                    {},
                    {static_cast<unsigned>(launch.items), 1, 1},
                    0,
                    call.pointers.data(),
                    nullptr,
                    nullptr,
                    context_};
    std::ranges::transform(launch.groups, node.groups,
                           [](index_t n) { return static_cast<unsigned>(n); });
    code = driver_.cuGraphAddKernelNode(&nodes.emplace_back(), graph, after.data(), after.size(),
                                        &node);
    if (code != 0) break;
    made->modules.push_back(std::move(call.module));
  }
  if (code == 0) code = driver_.cuGraphInstantiate(&made->exec, graph, 0);
  driver_.cuGraphDestroy(graph);
  if (code != 0) return nullptr;
  return std::make_unique<Recorded>(*this, made, steps_of(launches));
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
