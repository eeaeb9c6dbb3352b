// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Extents that are known become constants, and what needs only the extents of an array takes them
/// from what the array is computed from, so that the array itself need not be there.
///
/// Contract  values are unchanged, bit for bit. The extents of a result with several inputs that
///           could disagree are left to it
/// Order     to a fixed point
RewriteResult fold_shapes(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
