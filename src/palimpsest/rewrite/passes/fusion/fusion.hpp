// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Runs chains of elementwise ops as one pass, so that intermediate values are never in memory, and
/// results of the graph that read the same array as one pass with several results.
///
/// Contract  the same operations on the same values in the same order: equal bit for bit. A value
///           with another reader, an output, and a value that is broadcast into its reader stay. So
///           do two results that could overwrite more values apart than in one step, and a sum of
///           several computed arrays that is a term of another sum
/// Order     one sweep in topological order; a node takes in the nodes that only it reads. Then one
///           more, in which a result joins an earlier one
int fuse_elementwise(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
