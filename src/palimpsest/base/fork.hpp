// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <mutex>
#include <shared_mutex>

// Protection of the library's state in a child process of fork().
//
// The child has only the thread that called fork(); work that other threads had begun is never
// finished. So shared state changes only within a ForkSection, and fork() waits until no other
// thread is in one. The child then finds every lock free and all state whole.
namespace palimpsest {

/// While a thread has one, fork() by another thread waits, for 10 seconds at most. They nest.
///
/// Cost  about 2 ns: the thread writes to memory of its own, and fork() pays for the order
class ForkSection {
 public:
  ForkSection() noexcept { enter(); }
  ~ForkSection() { leave(); }
  ForkSection(const ForkSection&) = delete;
  ForkSection& operator=(const ForkSection&) = delete;

  static void enter() noexcept;
  static void leave() noexcept;
};

/// A std::mutex whose holder is in a ForkSection. The library uses no other mutex.
class Mutex {
 public:
  constexpr Mutex() = default;
  void lock() {
    ForkSection::enter();
    mutex_.lock();
  }
  bool try_lock() {
    ForkSection::enter();
    const bool is_ours = mutex_.try_lock();
    if (!is_ours) ForkSection::leave();
    return is_ours;
  }
  void unlock() {
    mutex_.unlock();
    ForkSection::leave();
  }

 private:
  std::mutex mutex_;
};

/// The same for readers and a writer.
class SharedMutex {
 public:
  void lock() {
    ForkSection::enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    ForkSection::leave();
  }
  void lock_shared() {
    ForkSection::enter();
    mutex_.lock_shared();
  }
  void unlock_shared() {
    mutex_.unlock_shared();
    ForkSection::leave();
  }

 private:
  std::shared_mutex mutex_;
};

/// The number of calls of fork() that led to this process since the library was first used. It
/// differs between a parent and its child.
unsigned process_generation() noexcept;

/// Runs `f` once in every child, on its only thread, before fork() returns there, even if called
/// several times with `f`. At most 8 functions in all.
void after_fork_in_child(void (*f)() noexcept);

}  // namespace palimpsest
