// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/interrupt.hpp"

namespace palimpsest {

constinit std::atomic<InterruptCheck> detail::interrupt_check{nullptr};

void set_interrupt_check(InterruptCheck check) noexcept {
  detail::interrupt_check.store(check, std::memory_order_release);
}

}  // namespace palimpsest
