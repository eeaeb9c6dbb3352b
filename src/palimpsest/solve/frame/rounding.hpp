// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <limits>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// The distance from 1 to the next number in the precision of a dtype.
inline double rounding_of(DType dtype) {
  return real_of(dtype) == DType::float32 ? std::numeric_limits<float>::epsilon()
                                          : std::numeric_limits<double>::epsilon();
}

}  // namespace palimpsest
