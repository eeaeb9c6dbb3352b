// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Known extents become constants. A node that needs only the extents of an array takes them from
/// the inputs of the array's op, so that the array itself need not exist.
///
/// Contract  values are unchanged, bit for bit. The extents of a result with several inputs that
///           could disagree are left to it
/// Order     to a fixed point
RewriteResult fold_shapes(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
