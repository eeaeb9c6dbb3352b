// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// Throws the exception that ends the present work.
using InterruptCheck = void (*)();

/// Sets the check that threads call between the steps of functions, the iterations of loops and
/// solvers and the passes of a compilation; null, the default: none. Its exceptions reach the
/// caller unchanged. Shared variables are then as before the call: once a step has begun to write a
/// new value in place of the old one, the check is no longer called.
///
///     set_interrupt_check([] {
///       if (stop_was_asked_for) throw Stopped();
///     });
///
/// Threads  any; several may be in the check at once
/// Cost     time between two calls: one step, which may be microseconds
void set_interrupt_check(InterruptCheck check) noexcept;

namespace detail {
extern std::atomic<InterruptCheck> interrupt_check;
void run_interrupt_check();
}  // namespace detail

inline bool has_interrupt_check() {
  return detail::interrupt_check.load(std::memory_order_relaxed) != nullptr;
}
/// Calls the check, if there is one and no UninterruptedScope of this thread forbids it.
inline void check_interrupt() {
  if (has_interrupt_check()) detail::run_interrupt_check();
}

/// While it lives, this thread does not call the check. Scopes nest.
class UninterruptedScope {
 public:
  UninterruptedScope();
  ~UninterruptedScope();
  UninterruptedScope(const UninterruptedScope&) = delete;
  UninterruptedScope& operator=(const UninterruptedScope&) = delete;
};

}  // namespace palimpsest
