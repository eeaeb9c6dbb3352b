// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Joins two elementwise steps with sums if only the second one reads arrays of the first, by
/// stencils that do not wrap around. These arrays are then in cache only.
///
/// Contract  equal bit for bit
/// Order     one sweep, after stencils have become filters of the steps that read them
RewriteResult join_passes(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
