// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// A slice of a padded array that shows none of the border, and one of joined parts that shows only
/// one of them, are taken from what was padded or joined; a join of the pieces of one array, in
/// their order, is that array; two borders of one value are one.
///
/// Contract  values are unchanged, bit for bit. Extents along the axes in question must be known
/// Order     to a fixed point
RewriteResult resolve_slices(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
