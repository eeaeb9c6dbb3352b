// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// A slice of a padded array that shows none of the border is taken from the unpadded array; a
/// slice of joined parts that shows only one part, from that part. A join of the pieces of one
/// array, in their order, becomes that array. Two borders of one value become one.
///
/// Contract  values are unchanged, bit for bit. Extents along the axes in question must be known
/// Order     to a fixed point
RewriteResult resolve_slices(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
