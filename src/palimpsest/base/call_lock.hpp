// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// A lock for readers or one writer that is held through whole calls, while other threads and the
/// user's code run; fork() does not wait for it. In a child it is free of the holders that the
/// child lacks, and remembers if one of them was writing.
class CallLock {
 public:
  void lock_shared() noexcept;
  void unlock_shared() noexcept;
  void lock() noexcept;
  void unlock() noexcept;

  /// True if a thread that this process lacks was writing, since the last heal(). The caller holds
  /// the lock.
  bool is_torn() const noexcept;
  /// Declares the guarded data whole again. Precondition: no other thread holds the lock.
  void heal() noexcept;
  /// For a child's only thread, which holds it since before fork().
  void keep_shared() noexcept;
  void keep() noexcept;

 private:
  std::atomic<std::uint64_t> word_{0};
};

}  // namespace palimpsest
