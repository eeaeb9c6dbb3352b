// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Checks factors of samples.
///
/// DTypes   float32; dense
/// Errors   ValueError beginning with `[who]` and naming the first weight that is NaN, infinite or
///          negative; or if all of them are 0
void check_weights(const std::string& who, const Tensor& weights);

}  // namespace palimpsest
