// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "palimpsest/device/backend.hpp"
#include "palimpsest/device/devices.hpp"

namespace palimpsest::testing {

/// A backend that runs commands on another one in an order that few drivers would choose but all
/// may: none until somebody waits, then only those that the wait needs. Programs that are right on
/// it lack no wait between queues and touch no memory that a command is still going to use.
///
/// Without a seed other queues run as late as the marks allow; a seed chooses at each wait the
/// queue that comes first, second and last. passed() runs the commands that it needs after it has
/// been asked 64 times in vain. Memory that is fresh or given back holds kPoison.
///
/// Errors   InternalError: a command on memory that was given back
class DelayingBackend final : public DeviceBackend {
 public:
  static constexpr std::uint8_t kPoison = 0xDB;

  explicit DelayingBackend(DeviceBackend& inner, std::uint32_t seed = 0);
  /// Drops the commands that have not run.
  ~DelayingBackend() override;

  const DeviceFacts& facts() const override { return inner_.facts(); }
  std::byte* obtain(std::size_t bytes) noexcept override;
  void give_back(std::byte* first, std::size_t bytes) noexcept override;
  std::byte* obtain_staging(std::size_t bytes) noexcept override;
  void give_back_staging(std::byte* first, std::size_t bytes) noexcept override;
  KernelProgram load(const KernelText& text, std::span<const std::byte> binary) override;
  void launch(Queue queue, const Launch& launch) override;
  void copy(Queue queue, void* to, const void* from, std::size_t bytes) override;
  void fill(Queue queue, void* to, std::uint8_t byte, std::size_t bytes) override;
  Mark mark(Queue queue) override;
  void wait(Queue queue, Queue marked, Mark mark) override;
  bool passed(Queue queue, Mark mark) override;
  void wait_on_host(Queue queue, Mark mark) override;
  bool owns(const void* address) const noexcept override;

  /// Commands that have not run.
  std::size_t pending() const;

 private:
  using Marks = std::array<Mark, kQueues>;
  struct Command {
    std::function<void()> run;  // empty: a wait
    Queue marked = Queue::work;
    Mark mark = 0;
  };
  struct Line {
    std::deque<Command> commands;  // numbers done + 1, ..
    Mark done = 0;
  };
  // Memory that is given back to the inner backend when the queues have passed the marks.
  struct Freed {
    std::byte* first;
    std::size_t bytes;
    bool is_staging;
    Marks marks;
  };

  Line& line(Queue queue) { return lines_[static_cast<std::size_t>(queue)]; }
  void enqueue(Queue queue, std::function<void()> run);
  void check_not_freed(const void* address) const;
  bool is_freed(const void* address) const;
  Marks marks_now() const;
  void need(Queue queue, Mark mark, Marks& needed);
  void run_needed(Queue queue, Mark mark);
  void give_on(std::byte* first, std::size_t bytes, bool is_staging) noexcept;
  void release(bool all) noexcept;

  DeviceBackend& inner_;
  mutable std::recursive_mutex mutex_;
  std::array<Line, kQueues> lines_;
  std::vector<Freed> freed_;
  std::mt19937 random_;
  bool has_seed_;
  int asked_in_vain_ = 0;
};

/// A further device whose commands run on `device`, delayed. The same one for each call.
Device delayed(Device device);

}  // namespace palimpsest::testing
