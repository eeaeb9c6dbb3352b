// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// A roll of a roll becomes one roll, along the axes of both; shifts along the same axis add up. A
/// roll back by as much leaves the array. Both rolls stay where an output or an op other than a
/// roll reads the first one: its pass over memory is needed in any case.
///
/// Contract  values are unchanged, bit for bit
/// Order     to a fixed point
RewriteResult combine_rolls(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
