// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>

namespace palimpsest {

/// A reduced angle: x = n pi/2 + r + low, |r| <= pi/4. The last two bits of `turns` are those of n.
struct LargeAngle {
  double r, low;
  std::uint64_t turns;
};

/// Reduces |x| >= 2^16 with a relative error of 2^-70. NaN for infinity.
LargeAngle reduce_large_angle(double x);

}  // namespace palimpsest
