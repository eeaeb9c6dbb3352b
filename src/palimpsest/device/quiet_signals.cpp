// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/quiet_signals.hpp"

#include <pthread.h>

#include <array>
#include <cstring>

#include "palimpsest/base/fork.hpp"

namespace palimpsest {
namespace {

// Handlers as they were when the first of the present scopes began.
struct SavedHandlers {
  Mutex mutex;
  int scopes = 0;
  std::array<struct sigaction, 65> of{};
  std::array<bool, 65> is_known{};  // the C library keeps some signals for itself
};
constinit SavedHandlers saved;

// A flag that the C library sets by itself.
constexpr int kRestorer = 0x04000000;

bool are_equal(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_handler == b.sa_handler && ((a.sa_flags ^ b.sa_flags) & ~kRestorer) == 0 &&
         std::memcmp(&a.sa_mask, &b.sa_mask, sizeof a.sa_mask) == 0;
}

}  // namespace

QuietSignals::QuietSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
  const std::lock_guard guard(saved.mutex);
  if (saved.scopes++ > 0) return;
  for (int signal = 1; signal < static_cast<int>(saved.of.size()); ++signal) {
    saved.is_known[signal] = sigaction(signal, nullptr, &saved.of[signal]) == 0;
  }
}

QuietSignals::~QuietSignals() {
  {
    const std::lock_guard guard(saved.mutex);
    if (--saved.scopes == 0) {
      for (int signal = 1; signal < static_cast<int>(saved.of.size()); ++signal) {
        struct sigaction now {};
        if (!saved.is_known[signal] || sigaction(signal, nullptr, &now) != 0) continue;
        if (!are_equal(now, saved.of[signal])) sigaction(signal, &saved.of[signal], nullptr);
      }
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace palimpsest
