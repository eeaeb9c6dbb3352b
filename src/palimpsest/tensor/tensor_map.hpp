// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/memory/memory_map.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Registers a tensor; see MemoryMap. An undefined tensor is a ValueError.
void add(MemoryMap& map, const Tensor& t);
/// The counterpart of t after the copy: same dtype and shape, same strides unless the map compacts.
Tensor map(const MemoryMap& map, const Tensor& t);
/// The same as shares_storage().
bool same_storage(const Tensor& a, const Tensor& b);

}  // namespace palimpsest
