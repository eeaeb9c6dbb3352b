// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Removes what does nothing: conversions to the same dtype, reshapes to the same extents, axes
/// that are added and removed again or put back into their order, whole slices, borders and shifts
/// of nothing, joins of one part, markers for derivatives, outputs of loops that nobody uses.
///
/// Contract  values are unchanged, bit for bit. A check that a node makes of extents that are
///           unknown here stays
/// Order     to a fixed point, then once over the loops, users first
RewriteResult drop_useless(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
