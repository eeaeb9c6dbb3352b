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

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/device/backend.hpp"
#include "palimpsest/device/ranges.hpp"

namespace palimpsest {

/// The part of a backend that all drivers with events have in common: order, marks, waits and the
/// failure that stays.
class QueuedBackend : public DeviceBackend {
 public:
  Mark mark() final;
  bool passed(Mark mark) final;
  void wait_on_host(Mark mark) final;
  void copy(void* to, const void* from, std::size_t bytes) final;
  void fill(void* to, std::uint8_t byte, std::size_t bytes) final;
  bool owns(const void* address) const noexcept final { return place_of(address, 1).has_value(); }

 protected:
  /// The end of a command. Its deleter releases it.
  using Ending = std::shared_ptr<void>;
  static constexpr int kRunning = 1;

  explicit QueuedBackend(std::string name) : name_(std::move(name)) {}

  /// 0 if the command has ended, kRunning, or the driver's error.
  virtual int status_of(void* ending) noexcept = 0;
  virtual void wait_for(void* ending) noexcept = 0;
  virtual std::string text_of_error(int code) const = 0;

  /// An allocation by its handle of the driver, and an offset in it.
  using Place = Ranges<void*>::Found;
  /// The place of memory that commands may use.
  virtual std::optional<Place> place_of(const void* address, std::size_t bytes) const noexcept {
    return blocks_.find(address, bytes);
  }
  /// Each enqueues one command, of at least one byte.
  virtual void copy_within(const Place& to, const Place& from, std::size_t bytes) = 0;
  virtual void copy_in(const Place& to, const void* from, std::size_t bytes) = 0;
  virtual void copy_out(void* to, const Place& from, std::size_t bytes) = 0;
  virtual void fill_place(const Place& to, std::uint8_t byte, std::size_t bytes) = 0;

  const std::string& device_name() const { return name_; }
  bool is_forked() const noexcept { return process_generation() != generation_; }
  /// Throws if no command can be enqueued any more.
  void check();
  bool is_lost() const noexcept { return is_lost_.load(std::memory_order_acquire); }

  /// The error of load() for the text, or for the binary if there is one.
  DeviceError refused(const KernelText& text, std::span<const std::byte> binary,
                      const std::string& complaint) const;
  /// The kernels of a launch, which this backend has loaded.
  template <class Kernels>
  const Kernels& kernels_of(const Launch& launch) const {
    const auto* const kernels = dynamic_cast<const Kernels*>(launch.program);
    if (kernels == nullptr || kernels->of != this) throw InternalError(foreign_kernels());
    return *kernels;
  }
  /// The parameters of a kernel, of 8 bytes each: an address is the handle of its allocation and
  /// an offset.
  std::vector<KernelArgument> parameters_of(const Launch& launch) const;
  [[noreturn]] void refuse_launch(const std::string& kernel, std::size_t parameters,
                                  std::size_t expected, int items, std::size_t expected_items);

  /// Calls call(ending), which enqueues one command, of a step or of none, and returns the driver's
  /// error, one at a time.
  template <class Call>
  void enqueue(const char* what, std::shared_ptr<const std::string> step, Call call) {
    for (;;) {
      check();
      Ending oldest;
      {
        const std::lock_guard guard(order_);
        oldest = make_room();
        if (oldest == nullptr) {
          running_.push_back({nullptr, std::move(step)});
          const int code = call(running_.back().ending);
          if (code == 0) return;
          lose(running_.back(), what, code);  // a part of it may run: what it needs stays
        }
      }
      wait_for(oldest.get());  // a failure is seen by make_room()
    }
  }
  void wait_uninterrupted(Mark mark);
  /// Forgets all commands.
  void forget_commands() { running_.clear(); }

  Ranges<void*> blocks_;
  Ranges<void*> staging_;

 private:
  struct Command {
    Ending ending;
    std::shared_ptr<const std::string> step;
  };
  [[noreturn]] void lose(const Command& failed, const char* what, int code);
  void settle();
  Ending make_room();
  Ending running_at(Mark mark);
  std::string outside() const;
  std::string foreign_kernels() const;

  const std::string name_;  // `opencl:0`
  const unsigned generation_ = process_generation();
  Mutex order_;
  std::deque<Command> running_;  // commands number done_ + 1, ..
  Mark done_ = 0;
  std::string lost_;
  std::atomic<bool> is_lost_{false};
};

}  // namespace palimpsest
