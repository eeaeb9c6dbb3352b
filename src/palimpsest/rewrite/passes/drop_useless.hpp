// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Removes useless nodes: conversions to the same dtype, reshapes to the same extents, axes that
/// are added and removed again or put back into their order, whole slices, empty borders and
/// shifts, joins of one part, markers for derivatives, unused outputs of loops.
///
/// Contract  values are unchanged, bit for bit. A node that checks extents unknown in the graph
///           stays
/// Order     to a fixed point, then once over the loops, users first
RewriteResult drop_useless(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
