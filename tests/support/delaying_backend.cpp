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
    inner_.fill(Queue::work, first, kPoison, bytes);
    inner_.wait_on_host(Queue::work, inner_.mark(Queue::work));
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
  freed_.push_back({first, bytes, is_staging, marks_now()});
  release(false);
}

void DelayingBackend::release(bool all) noexcept {
  std::erase_if(freed_, [&](const Freed& freed) {
    for (std::size_t q = 0; q < kQueues && !all; ++q) {
      if (lines_[q].done < freed.marks[q]) return false;
    }
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

void DelayingBackend::enqueue(Queue queue, std::function<void()> run) {
  inner_.passed(queue, 0);  // throws if the device is lost or cannot be used
  const std::lock_guard guard(mutex_);
  line(queue).commands.push_back({.run = std::move(run)});
}

void DelayingBackend::launch(Queue queue, const Launch& launch) {
  std::vector<KernelArgument> arguments(launch.arguments.begin(), launch.arguments.end());
  for (const KernelArgument& argument : arguments) {
    if (argument.kind == KernelArgument::Kind::address) check_not_freed(argument.address);
  }
  const auto* const delayed = dynamic_cast<const DelayedKernels*>(launch.program);
  const KernelProgram program = delayed != nullptr
                                    ? delayed->inner
                                    : KernelProgram(KernelProgram(), launch.program);  // borrowed
  enqueue(queue, [this, queue, program, launch, arguments = std::move(arguments)] {
    Launch own = launch;
    own.program = program.get();
    own.arguments = arguments;
    inner_.launch(queue, own);
  });
}

void DelayingBackend::copy(Queue queue, void* to, const void* from, std::size_t bytes) {
  check_not_freed(to);
  check_not_freed(from);
  enqueue(queue, [this, queue, to, from, bytes] { inner_.copy(queue, to, from, bytes); });
}

void DelayingBackend::fill(Queue queue, void* to, std::uint8_t byte, std::size_t bytes) {
  check_not_freed(to);
  enqueue(queue, [this, queue, to, byte, bytes] { inner_.fill(queue, to, byte, bytes); });
}

Mark DelayingBackend::mark(Queue queue) {
  inner_.mark(queue);
  const std::lock_guard guard(mutex_);
  return marks_now()[static_cast<std::size_t>(queue)];
}

void DelayingBackend::wait(Queue queue, Queue marked, Mark mark) {
  if (queue == marked) return;
  const std::lock_guard guard(mutex_);
  line(queue).commands.push_back({.run = {}, .marked = marked, .mark = mark});
}

bool DelayingBackend::passed(Queue queue, Mark mark) {
  inner_.passed(queue, 0);
  const std::lock_guard guard(mutex_);
  if (line(queue).done < mark && ++asked_in_vain_ >= kPatience) run_needed(queue, mark);
  if (line(queue).done < mark) return false;
  asked_in_vain_ = 0;
  return true;
}

void DelayingBackend::wait_on_host(Queue queue, Mark mark) {
  inner_.mark(queue);
  const std::lock_guard guard(mutex_);
  if (mark > marks_now()[static_cast<std::size_t>(queue)]) {
    throw InternalError("[delayed] a mark behind the last command");
  }
  run_needed(queue, mark);
}

bool DelayingBackend::owns(const void* address) const noexcept {
  const std::lock_guard guard(mutex_);
  return !is_freed(address) && inner_.owns(address);
}

std::size_t DelayingBackend::pending() const {
  const std::lock_guard guard(mutex_);
  std::size_t n = 0;
  for (const Line& one : lines_) n += one.commands.size();
  return n;
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

DelayingBackend::Marks DelayingBackend::marks_now() const {
  Marks marks{};
  for (std::size_t q = 0; q < kQueues; ++q) marks[q] = lines_[q].done + lines_[q].commands.size();
  return marks;
}

// Raises `needed` so that it covers the commands up to the mark and those that they wait for.
void DelayingBackend::need(Queue queue, Mark mark, Marks& needed) {
  Mark& known = needed[static_cast<std::size_t>(queue)];
  const Mark from = std::max(known, line(queue).done);
  if (mark <= from) return;
  known = mark;
  for (Mark number = from + 1; number <= mark; ++number) {
    const Command& command = line(queue).commands[number - line(queue).done - 1];
    if (!command.run) need(command.marked, command.mark, needed);
  }
}

void DelayingBackend::run_needed(Queue queue, Mark mark) {
  Marks needed{};
  need(queue, mark, needed);
  std::array<Queue, kQueues> order{Queue::work, Queue::in, Queue::out};
  if (has_seed_) {
    std::shuffle(order.begin(), order.end(), random_);
  } else {
    std::swap(order[0], *std::find(order.begin(), order.end(), queue));
  }
  // Its next command is needed and may run.
  const auto can_run = [&](Queue q) {
    const Line& its = line(q);
    if (its.done >= needed[static_cast<std::size_t>(q)]) return false;
    const Command& next = its.commands.front();
    return next.run || line(next.marked).done >= next.mark;
  };
  for (;;) {
    const auto found = std::find_if(order.begin(), order.end(), can_run);
    if (found == order.end()) break;
    check_interrupt();
    Line& its = line(*found);
    const Command command = std::move(its.commands.front());
    its.commands.pop_front();
    ++its.done;
    if (!command.run) continue;
    const UninterruptedScope whole;
    command.run();
    inner_.wait_on_host(*found, inner_.mark(*found));
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

}  // namespace palimpsest::testing
