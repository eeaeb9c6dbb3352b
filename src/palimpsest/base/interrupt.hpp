// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// Throws what is to end the present work.
using InterruptCheck = void (*)();

/// Sets what is called between the steps of functions, the iterations of loops and solvers and the
/// passes of a compilation, by the threads that run them; null, as at the start: nothing. What it
/// throws arrives at the caller as it is. Shared variables are then as before the call.
///
///     set_interrupt_check([] {
///       if (stop_was_asked_for) throw Stopped();
///     });
///
/// Threads  any; several may be in the check at once
/// Cost     of an interval between two calls: that of a step, which may be microseconds
void set_interrupt_check(InterruptCheck check) noexcept;

namespace detail {
extern std::atomic<InterruptCheck> interrupt_check;
}

/// Calls the check, if there is one.
inline void check_interrupt() {
  if (const InterruptCheck check = detail::interrupt_check.load(std::memory_order_acquire)) check();
}

}  // namespace palimpsest
