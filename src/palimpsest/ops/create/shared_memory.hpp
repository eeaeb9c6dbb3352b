// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/region.hpp"
#include "palimpsest/graph/variable.hpp"

namespace palimpsest::ops {

/// Does b show bytes of this part of a? Told from their views and what was overwritten, a short way
/// up: what lies beyond is left to the alias check of the graph.
bool shows_common_memory(const Variable& a, const Variable& b,
                         const Region& part = Region::whole());

}  // namespace palimpsest::ops
