// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Computes equal things once: constants of equal type and bytes, and equal ops on equal inputs.
///
/// Contract  values are unchanged, bit for bit; nodes that overwrite something are left alone
/// Cost      one sweep in topological order
int merge_duplicates(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
