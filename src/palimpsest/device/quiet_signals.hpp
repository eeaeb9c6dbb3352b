// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <csignal>

namespace palimpsest {

/// While one lives, code of a driver may run that sets handlers of signals and starts threads: the
/// calling thread, and so the threads that it starts, have all signals blocked, and at the end of
/// the last scope all handlers are as before the first one.
class QuietSignals {
 public:
  QuietSignals();
  ~QuietSignals();
  QuietSignals(const QuietSignals&) = delete;
  QuietSignals& operator=(const QuietSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace palimpsest
