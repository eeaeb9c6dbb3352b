// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/region.hpp"
#include "palimpsest/graph/variable.hpp"

namespace palimpsest::ops {

/// True if b shows bytes of this part of a, as far as their views and overwritten inputs tell a
/// short way up. The alias check of the graph finds the rest.
bool shows_common_memory(const Variable& a, const Variable& b,
                         const Region& part = Region::whole());

}  // namespace palimpsest::ops
