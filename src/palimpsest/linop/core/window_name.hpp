// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <vector>

#include "palimpsest/named/dims.hpp"

namespace palimpsest {

/// A name for a dimension between the parts of a tile, made from d: one that nobody else would use,
/// since whoever holds the tile sees it.
ND window_name(const ND& d, const std::vector<ND>& taken);

}  // namespace palimpsest
