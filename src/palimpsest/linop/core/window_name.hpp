// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <vector>

#include "palimpsest/named/dims.hpp"

namespace palimpsest {

/// A name made from d for a dimension between the parts of a tile. No user would choose it: the
/// holder of the tile sees it.
ND window_name(const ND& d, const std::vector<ND>& taken);

}  // namespace palimpsest
