// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Two elementwise steps with sums, of which the second one alone reads arrays of the first one, by
/// stencils that do not wrap around, become one: these arrays are in cache only.
///
/// Contract  equal bit for bit
/// Order     one sweep, after stencils have become filters of the steps that read them
RewriteResult join_passes(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
