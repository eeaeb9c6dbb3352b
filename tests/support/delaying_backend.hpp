// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// A backend that runs commands on another one when few drivers would but all may: none until
/// somebody waits, then only those that the wait needs. Launches of a recording run in an order
/// that few would choose: without a seed the last one that may comes first, a seed chooses.
/// Programs that are right on it touch no memory that a command is still going to use, and
/// recordings say what each launch needs.
///
/// passed() runs the commands that it needs after it has been asked 64 times in vain. Memory that
/// is fresh or given back holds kPoison.
///
/// Errors   InternalError: a command on memory that was given back
class DelayingBackend : public DeviceBackend {
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
  void launch(const Launch& launch) override;
  std::unique_ptr<Recording> record(std::span<const RecordedLaunch> launches) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void fill(void* to, std::uint8_t byte, std::size_t bytes) override;
  Mark mark() override;
  bool passed(Mark mark) override;
  void wait_on_host(Mark mark) override;
  bool owns(const void* address) const noexcept override;

  /// Commands that have not run.
  std::size_t pending() const;
  /// Recordings that were enqueued, and times that the host waited.
  int replays() const { return replays_; }
  int waits() const { return waits_; }

 private:
  friend class DelayedRecording;
  // Memory that is given back to the inner backend when the mark has passed.
  struct Freed {
    std::byte* first;
    std::size_t bytes;
    bool is_staging;
    Mark mark;
  };

  Mark end() const { return done_ + commands_.size(); }
  void enqueue(std::function<void()> run);
  std::size_t pick(std::size_t n);  // of n launches that may run
  void check_not_freed(const void* address) const;
  void check_arguments(std::span<const KernelArgument> arguments) const;
  bool is_freed(const void* address) const;
  void run_until(Mark mark);
  void give_on(std::byte* first, std::size_t bytes, bool is_staging) noexcept;
  void release(bool all) noexcept;

  DeviceBackend& inner_;
  mutable std::recursive_mutex mutex_;
  std::deque<std::function<void()>> commands_;  // numbers done_ + 1, ..
  Mark done_ = 0;
  std::vector<Freed> freed_;
  std::mt19937 random_;
  bool has_seed_;
  int asked_in_vain_ = 0, replays_ = 0, waits_ = 0;
};

/// A further device whose commands run on `device`, delayed. The same one for each call.
Device delayed(Device device);
DelayingBackend& delaying_backend(Device delayed);

}  // namespace palimpsest::testing
