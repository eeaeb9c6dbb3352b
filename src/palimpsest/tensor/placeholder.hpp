// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

/// A dense tensor without memory, for plans, which look at types, layouts and addresses only. Each
/// lies at addresses of its own that no memory of the process has; foreign writable.
Tensor placeholder(DType dtype, const Extents& extents, Device device = {});

}  // namespace palimpsest
