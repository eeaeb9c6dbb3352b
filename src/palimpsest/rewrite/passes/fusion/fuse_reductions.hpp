// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Moves the elementwise step that computes the input of a reduction, and has no other reader, into
/// the reduction, so that its result is never in memory.
///
/// Contract  the same operations in the same order: equal bit for bit. A step stays if it would be
///           run for a few elements at a time: if the innermost axes that are reduced together, or
///           kept together, are known to have fewer than 64
/// Order     one sweep, after elementwise steps are fused
RewriteResult fuse_reductions(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
