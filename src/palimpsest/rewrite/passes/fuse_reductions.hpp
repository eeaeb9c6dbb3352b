// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// A reduction takes in the elementwise step that computes what only it reads, so that this is
/// never in memory.
///
/// Contract  the same operations in the same order: equal bit for bit. A step stays where it would
///           be run for a few elements at a time: where the innermost axes that are reduced
///           together, or kept together, are known to have fewer than 64
/// Order     one sweep, after elementwise steps are fused
RewriteResult fuse_reductions(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
