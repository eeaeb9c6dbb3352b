// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// Wall clock since construction, or since the last lap.
class StopWatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  /// Seconds of the lap that ends now; the next one begins.
  double lap() {
    const double passed = seconds();
    start_ = Clock::now();
    return passed;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace palimpsest
