// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/device/backend.hpp"

namespace palimpsest {

/// The part of a backend that all drivers with events have in common: order, marks, waits and the
/// failure that stays.
class QueuedBackend : public DeviceBackend {
 public:
  Mark mark(Queue queue) final;
  void wait(Queue queue, Queue marked, Mark mark) final;
  bool passed(Queue queue, Mark mark) final;
  void wait_on_host(Queue queue, Mark mark) final;

 protected:
  /// The end of a command. Its deleter releases it.
  using Ending = std::shared_ptr<void>;
  static constexpr int kRunning = 1;

  explicit QueuedBackend(std::string name) : name_(std::move(name)) {}

  /// 0 if the command has ended, kRunning, or the driver's error.
  virtual int status_of(void* ending) noexcept = 0;
  virtual void wait_for(void* ending) noexcept = 0;
  /// Enqueues a command that ends when another one has ended. Returns the driver's error.
  virtual int enqueue_wait(Queue queue, void* other, Ending& ending) = 0;
  virtual std::string text_of_error(int code) const = 0;

  const std::string& device_name() const { return name_; }
  bool is_forked() const noexcept { return process_generation() != generation_; }
  /// Throws if no command can be enqueued any more.
  void check();
  bool is_lost() const noexcept { return is_lost_.load(std::memory_order_acquire); }
  std::string outside() const;

  /// Calls call(ending), which enqueues one command and returns the driver's error, one at a time.
  template <class Call>
  void enqueue(Queue queue, const char* what, Call call) {
    for (;;) {
      check();
      Ending oldest;
      {
        const std::lock_guard guard(order_);
        oldest = make_room();
        if (oldest == nullptr) {
          auto& running = lines_[static_cast<std::size_t>(queue)].running;
          running.emplace_back();
          const int code = call(running.back());
          if (code == 0) return;
          running.pop_back();
          lose(what, code);
        }
      }
      wait_for(oldest.get());  // a failure is seen by make_room()
    }
  }
  void wait_uninterrupted(Queue queue, Mark mark);
  /// Forgets all commands.
  void forget_commands();

 private:
  // A queue with its commands from number done + 1 on.
  struct Line {
    std::deque<Ending> running;
    Mark done = 0;
  };

  [[noreturn]] void lose(const char* what, int code);
  void settle(Line& line);
  Ending make_room();
  Ending running_at(Queue queue, Mark mark);
  Line& line_of(Queue queue) { return lines_[static_cast<std::size_t>(queue)]; }

  const std::string name_;  // `opencl:0`
  const unsigned generation_ = process_generation();
  Mutex order_;
  std::array<Line, kQueues> lines_;
  std::string lost_;
  std::atomic<bool> is_lost_{false};
};

}  // namespace palimpsest
