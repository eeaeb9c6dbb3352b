// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Sums over all elements, such as norms and inner products, are taken in the elementwise step that
/// makes their operand, or in one that reads it: one pass instead of two.
///
/// Contract  arrays are equal bit for bit; an inner product adds its terms in another order
/// Order     one sweep, after elementwise steps and reductions are fused
RewriteResult fuse_sums(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
