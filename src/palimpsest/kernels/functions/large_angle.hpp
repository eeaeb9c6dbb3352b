// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>

namespace palimpsest {

/// x = n pi/2 + r + low for some n with the last two bits of `turns`, |r| <= pi/4.
struct LargeAngle {
  double r, low;
  std::uint64_t turns;
};

/// The remainder for |x| >= 2^16, to 2^-70 of itself, with as many digits of 2/pi as it takes. Not
/// a number for infinity.
LargeAngle reduce_large_angle(double x);

}  // namespace palimpsest
