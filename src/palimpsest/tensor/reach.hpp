// SPDX-License-Identifier: Apache-2.0
// Internal: which memory a tensor may reach.
#pragma once

#include "palimpsest/memory/storage.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

/// May the bytes of t, from the lowest to the highest, lie in the storage? As may_share_memory()
/// with a tensor of all bytes of the storage, without making one.
bool may_reach(const Tensor& t, const Storage& storage);

}  // namespace palimpsest
