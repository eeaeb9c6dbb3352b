// SPDX-License-Identifier: Apache-2.0
#include "support/delaying_backend.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/interrupt.hpp"

namespace palimpsest::testing {
namespace {

constexpr int kPatience = 64;

// Kernels of the inner backend, which the commands that wait share.
struct DelayedKernels final : LoadedKernels {
  explicit DelayedKernels(KernelProgram loaded) : inner(std::move(loaded)) {}
  std::vector<std::byte> binary() const override { return inner->binary(); }
  KernelProgram inner;
};

}  // namespace

DelayingBackend::DelayingBackend(DeviceBackend& inner, std::uint32_t seed)
    : inner_(inner), random_(seed), has_seed_(seed != 0) {}

DelayingBackend::~DelayingBackend() { release(true); }

std::byte* DelayingBackend::obtain(std::size_t bytes) noexcept {
  std::byte* const first = inner_.obtain(bytes);
  if (first == nullptr) return nullptr;
  try {
    const UninterruptedScope whole;
    inner_.fill(first, kPoison, bytes);
    inner_.wait_on_host(inner_.mark());
  } catch (const DeviceError&) {  // so says the next command
  }
  return first;
}

void DelayingBackend::give_back(std::byte* first, std::size_t bytes) noexcept {
  if (first != nullptr) give_on(first, bytes, false);
}

std::byte* DelayingBackend::obtain_staging(std::size_t bytes) noexcept {
  std::byte* const first = inner_.obtain_staging(bytes);
  if (first != nullptr) std::memset(first, kPoison, bytes);
  return first;
}

void DelayingBackend::give_back_staging(std::byte* first, std::size_t bytes) noexcept {
  if (first == nullptr) return;
  std::memset(first, kPoison, bytes);
  give_on(first, bytes, true);
}

void DelayingBackend::give_on(std::byte* first, std::size_t bytes, bool is_staging) noexcept {
  const std::lock_guard guard(mutex_);
  freed_.push_back({first, bytes, is_staging, end()});
  release(false);
}

void DelayingBackend::release(bool all) noexcept {
  std::erase_if(freed_, [&](const Freed& freed) {
    if (done_ < freed.mark && !all) return false;
    if (freed.is_staging) {
      inner_.give_back_staging(freed.first, freed.bytes);
    } else {
      inner_.give_back(freed.first, freed.bytes);
    }
    return true;
  });
}

KernelProgram DelayingBackend::load(const KernelText& text, std::span<const std::byte> binary) {
  return std::make_shared<DelayedKernels>(inner_.load(text, binary));
}

void DelayingBackend::enqueue(std::function<void()> run) {
  inner_.passed(0);  // throws if the device is lost or cannot be used
  const std::lock_guard guard(mutex_);
  commands_.push_back(std::move(run));
}

// A launch of kernels that the command keeps.
struct DelayingLaunch {
  explicit DelayingLaunch(const Launch& given)
      : launch(given), arguments(given.arguments.begin(), given.arguments.end()) {
    const auto* const delayed = dynamic_cast<const DelayedKernels*>(given.program);
    program = delayed != nullptr ? delayed->inner
                                 : KernelProgram(KernelProgram(), given.program);  // borrowed
  }
  void run(DeviceBackend& on) const {
    Launch own = launch;
    own.program = program.get();
    own.arguments = arguments;
    on.launch(own);
  }

  Launch launch;
  std::vector<KernelArgument> arguments;
  KernelProgram program;
};

class DelayedRecording final : public Recording {
 public:
  DelayedRecording(DelayingBackend& backend, std::span<const RecordedLaunch> launches)
      : backend_(backend) {
    for (const RecordedLaunch& recorded : launches) {
      Launch whole = recorded.launch;
      whole.arguments = recorded.arguments;
      launches_.emplace_back(whole);
      after_.push_back(recorded.after);
    }
  }
  void enqueue() override {
    for (const DelayingLaunch& one : launches_) backend_.check_arguments(one.arguments);
    ++backend_.replays_;
    backend_.enqueue([&backend = backend_, launches = launches_, after = after_] {
      std::vector<bool> has_run(launches.size());
      for (std::size_t n = 0; n < launches.size(); ++n) {
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < launches.size(); ++i) {
          const bool may_run =
              std::ranges::all_of(after[i], [&](std::size_t j) { return has_run[j]; });
          if (!has_run[i] && may_run) ready.push_back(i);
        }
        const std::size_t next = ready.at(backend.pick(ready.size()));
        launches[next].run(backend.inner_);
        has_run[next] = true;
      }
    });
  }

 private:
  DelayingBackend& backend_;
  std::vector<DelayingLaunch> launches_;
  std::vector<std::vector<std::size_t>> after_;
};

std::size_t DelayingBackend::pick(std::size_t n) { return has_seed_ ? random_() % n : n - 1; }

std::unique_ptr<Recording> DelayingBackend::record(std::span<const RecordedLaunch> launches) {
  return std::make_unique<DelayedRecording>(*this, launches);
}

void DelayingBackend::launch(const Launch& launch) {
  check_arguments(launch.arguments);
  enqueue([this, own = DelayingLaunch(launch)] { own.run(inner_); });
}

void DelayingBackend::copy(void* to, const void* from, std::size_t bytes) {
  check_not_freed(to);
  check_not_freed(from);
  enqueue([this, to, from, bytes] { inner_.copy(to, from, bytes); });
}

void DelayingBackend::fill(void* to, std::uint8_t byte, std::size_t bytes) {
  check_not_freed(to);
  enqueue([this, to, byte, bytes] { inner_.fill(to, byte, bytes); });
}

Mark DelayingBackend::mark() {
  inner_.mark();
  const std::lock_guard guard(mutex_);
  return end();
}

bool DelayingBackend::passed(Mark mark) {
  inner_.passed(0);
  const std::lock_guard guard(mutex_);
  if (done_ < mark && ++asked_in_vain_ >= kPatience) run_until(mark);
  if (done_ < mark) return false;
  asked_in_vain_ = 0;
  return true;
}

void DelayingBackend::wait_on_host(Mark mark) {
  inner_.mark();
  const std::lock_guard guard(mutex_);
  if (mark > end()) throw InternalError("[delayed] a mark behind the last command");
  ++waits_;
  run_until(mark);
}

bool DelayingBackend::owns(const void* address) const noexcept {
  const std::lock_guard guard(mutex_);
  return !is_freed(address) && inner_.owns(address);
}

std::size_t DelayingBackend::pending() const {
  const std::lock_guard guard(mutex_);
  return commands_.size();
}

bool DelayingBackend::is_freed(const void* address) const {
  return std::any_of(freed_.begin(), freed_.end(), [address](const Freed& freed) {
    return address >= freed.first && address < freed.first + freed.bytes;
  });
}

void DelayingBackend::check_not_freed(const void* address) const {
  const std::lock_guard guard(mutex_);
  if (is_freed(address)) throw InternalError("[delayed] a command on memory that was given back");
}

void DelayingBackend::check_arguments(std::span<const KernelArgument> arguments) const {
  for (const KernelArgument& argument : arguments) {
    if (argument.kind == KernelArgument::Kind::address) check_not_freed(argument.address);
  }
}

void DelayingBackend::run_until(Mark mark) {
  while (done_ < mark) {
    check_interrupt();
    const std::function<void()> command = std::move(commands_.front());
    commands_.pop_front();
    ++done_;
    const UninterruptedScope whole;
    command();
    inner_.wait_on_host(inner_.mark());
  }
  release(false);
}

Device delayed(Device device) {
  constexpr std::int16_t kDistance = 70;
  const Device made{device.type, static_cast<std::int16_t>(device.index + kDistance)};
  static std::mutex mutex;
  static std::vector<Device> all;
  const std::lock_guard lock(mutex);
  if (std::find(all.begin(), all.end(), made) == all.end()) {
    add_backend(made, std::make_shared<DelayingBackend>(backend_of(device)));
    all.push_back(made);
  }
  return made;
}

DelayingBackend& delaying_backend(Device delayed) {
  return dynamic_cast<DelayingBackend&>(backend_of(delayed));
}

}  // namespace palimpsest::testing
