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
    const auto found = place_of(argument.address, 0);
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

void QueuedBackend::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return check();
  const auto target = place_of(to, bytes);
  const auto source = place_of(from, bytes);
  if (target && source) return copy_within(*target, *source, bytes);
  if (target && staging_.find(from, bytes)) return copy_in(*target, from, bytes);
  if (source && staging_.find(to, bytes)) return copy_out(to, *source, bytes);
  throw InternalError(outside());
}

void QueuedBackend::fill(void* to, std::uint8_t byte, std::size_t bytes) {
  if (bytes == 0) return check();
  const auto target = place_of(to, bytes);
  if (!target) throw InternalError(outside());
  fill_place(*target, byte, bytes);
}

// Precondition of those below: order_ is held.
void QueuedBackend::lose(const Command& failed, const char* what, int code) {
  if (lost_.empty()) {
    const std::string step = failed.step ? *failed.step + ", " : std::string();
    lost_ = fmt::format("[{}] lost after {}{}: {}. Try to restart the process", name_, step, what,
                        text_of_error(code));
  }
  is_lost_.store(true, std::memory_order_release);
  throw DeviceError(lost_);
}

// Removes the commands that have run.
void QueuedBackend::settle() {
  while (!running_.empty()) {
    const int status = status_of(running_.front().ending.get());
    if (status == kRunning) return;
    if (status != 0) lose(running_.front(), "a command", status);
    running_.pop_front();
    ++done_;
  }
}

// Null if another command may be enqueued; else the one to wait for.
QueuedBackend::Ending QueuedBackend::make_room() {
  settle();
  return running_.size() < kMostInFlight ? nullptr : running_.front().ending;
}

// A command; null if it has run.
QueuedBackend::Ending QueuedBackend::running_at(Mark mark) {
  check();
  const std::lock_guard guard(order_);
  settle();
  if (mark <= done_) return nullptr;
  const std::size_t position = mark - done_ - 1;
  if (position >= running_.size()) {
    throw InternalError(
        fmt::format("[{}] mark {} of {} commands", name_, mark, done_ + running_.size()));
  }
  return running_[position].ending;
}

Mark QueuedBackend::mark() {
  check();
  const std::lock_guard guard(order_);
  return done_ + running_.size();
}

bool QueuedBackend::passed(Mark mark) {
  check();
  const std::lock_guard guard(order_);
  settle();
  return done_ >= mark;
}

void QueuedBackend::wait_uninterrupted(Mark mark) {
  while (const Ending ending = running_at(mark)) wait_for(ending.get());
}

void QueuedBackend::wait_on_host(Mark mark) {
  if (!has_interrupt_check()) return wait_uninterrupted(mark);
  constexpr std::chrono::microseconds kLongestPause{1000};
  std::chrono::microseconds pause{0};
  while (running_at(mark) != nullptr) {
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
