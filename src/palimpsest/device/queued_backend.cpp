// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/queued_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "palimpsest/base/interrupt.hpp"
#include "palimpsest/device/messages.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kMostInFlight = 1024;

}  // namespace

void QueuedBackend::check() {
  if (is_forked()) throw DeviceError(forked_text(name_));
  if (!is_lost_.load(std::memory_order_acquire)) return;
  const std::lock_guard guard(order_);
  throw DeviceError(lost_);
}

std::string QueuedBackend::outside() const {
  return fmt::format("[{}] an address outside of its memory and of its staging memory", name_);
}

std::string QueuedBackend::foreign_kernels() const {
  return fmt::format("[{}] kernels of another device", name_);
}

DeviceError QueuedBackend::refused(const KernelText& text, std::span<const std::byte> binary,
                                   const std::string& complaint) const {
  return DeviceError(binary.empty() ? does_not_compile(text.name, name_, complaint)
                                    : foreign_binary(text.name, name_, complaint));
}

std::vector<KernelArgument> QueuedBackend::parameters_of(const Launch& launch) const {
  std::vector<KernelArgument> values;
  values.reserve(2 * launch.arguments.size());
  for (const KernelArgument& argument : launch.arguments) {
    if (argument.kind != KernelArgument::Kind::address) {
      values.push_back(argument);
      continue;
    }
    const auto found = blocks_.find(argument.address, 0);
    if (argument.address != nullptr && !found) throw InternalError(outside());
    values.push_back(KernelArgument::of(static_cast<const void*>(found ? found->value : nullptr)));
    values.push_back(KernelArgument::of(static_cast<std::int64_t>(found ? found->offset : 0)));
  }
  return values;
}

void QueuedBackend::refuse_launch(const std::string& kernel, std::size_t parameters,
                                  std::size_t expected, int items, std::size_t expected_items) {
  throw InternalError(
      fmt::format("[{}] kernel {}: got {} parameters and {} items, expected {} and {}", name_,
                  kernel, parameters, items, expected, expected_items));
}

void QueuedBackend::copy(Queue queue, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return check();
  const auto target = blocks_.find(to, bytes);
  const auto source = blocks_.find(from, bytes);
  if (target && source) return copy_within(queue, *target, *source, bytes);
  if (target && staging_.find(from, bytes)) return copy_in(queue, *target, from, bytes);
  if (source && staging_.find(to, bytes)) return copy_out(queue, to, *source, bytes);
  throw InternalError(outside());
}

void QueuedBackend::fill(Queue queue, void* to, std::uint8_t byte, std::size_t bytes) {
  if (bytes == 0) return check();
  const auto target = blocks_.find(to, bytes);
  if (!target) throw InternalError(outside());
  fill_place(queue, *target, byte, bytes);
}

bool QueuedBackend::owns(const void* address) const noexcept {
  return blocks_.find(address, 1).has_value();
}

// Precondition of those below: order_ is held.
void QueuedBackend::lose(const char* what, int code) {
  if (lost_.empty()) {
    lost_ = fmt::format("[{}] lost after {}: {}. Try to restart the process", name_, what,
                        text_of_error(code));
  }
  is_lost_.store(true, std::memory_order_release);
  throw DeviceError(lost_);
}

// Removes the commands that have run.
void QueuedBackend::settle(Line& line) {
  while (!line.running.empty()) {
    const int status = status_of(line.running.front().get());
    if (status == kRunning) return;
    if (status != 0) lose("a command", status);
    line.running.pop_front();
    ++line.done;
  }
}

// Null if another command may be enqueued; else the one to wait for.
QueuedBackend::Ending QueuedBackend::make_room() {
  std::size_t in_flight = 0;
  const Line* longest = &lines_[0];
  for (Line& line : lines_) {
    settle(line);
    in_flight += line.running.size();
    if (line.running.size() > longest->running.size()) longest = &line;
  }
  return in_flight < kMostInFlight ? nullptr : longest->running.front();
}

// A command; null if it has run.
QueuedBackend::Ending QueuedBackend::running_at(Queue queue, Mark mark) {
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
  return line.running[position];
}

void QueuedBackend::forget_commands() {
  for (Line& line : lines_) line.running.clear();
}

Mark QueuedBackend::mark(Queue queue) {
  check();
  const std::lock_guard guard(order_);
  return line_of(queue).done + line_of(queue).running.size();
}

void QueuedBackend::wait(Queue queue, Queue marked, Mark mark) {
  if (queue == marked) return check();
  const Ending other = running_at(marked, mark);
  if (other == nullptr) return;
  enqueue(queue, "a wait",
          [&](Ending& ending) { return enqueue_wait(queue, other.get(), ending); });
}

bool QueuedBackend::passed(Queue queue, Mark mark) {
  check();
  const std::lock_guard guard(order_);
  settle(line_of(queue));
  return line_of(queue).done >= mark;
}

void QueuedBackend::wait_uninterrupted(Queue queue, Mark mark) {
  while (const Ending ending = running_at(queue, mark)) wait_for(ending.get());
}

void QueuedBackend::wait_on_host(Queue queue, Mark mark) {
  if (!has_interrupt_check()) return wait_uninterrupted(queue, mark);
  constexpr std::chrono::microseconds kLongestPause{1000};
  std::chrono::microseconds pause{0};
  while (running_at(queue, mark) != nullptr) {
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

}  // namespace palimpsest
