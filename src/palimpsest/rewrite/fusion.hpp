// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Runs chains of elementwise ops as one pass, so that what lies between them never is in memory.
///
/// Contract  the same operations on the same values in the same order: equal bit for bit. A value
///           that has another reader, is an output, or is broadcast into its reader stays
/// Order     one sweep in topological order; a node takes in the nodes that only it reads
int fuse_elementwise(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
