// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <limits>

#include "palimpsest/graph/variable.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

/// The distance from 1 to the next number in the precision of a dtype.
inline double rounding_of(DType dtype) {
  return real_of(dtype) == DType::float32 ? std::numeric_limits<float>::epsilon()
                                          : std::numeric_limits<double>::epsilon();
}

inline TensorType type_of(const Tensor& t) { return {t.dtype(), t.shape(), t.device()}; }

}  // namespace palimpsest
