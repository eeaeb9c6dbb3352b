// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/interrupt.hpp"

namespace palimpsest {
namespace {

thread_local constinit int scopes = 0;

}  // namespace

constinit std::atomic<InterruptCheck> detail::interrupt_check{nullptr};

void detail::run_interrupt_check() {
  if (scopes > 0) return;
  if (const InterruptCheck check = interrupt_check.load(std::memory_order_acquire)) check();
}

void set_interrupt_check(InterruptCheck check) noexcept {
  detail::interrupt_check.store(check, std::memory_order_release);
}

UninterruptedScope::UninterruptedScope() { ++scopes; }
UninterruptedScope::~UninterruptedScope() { --scopes; }

}  // namespace palimpsest
