// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Computes the output of a stencil, such as a finite difference, within the elementwise step with
/// sums that is its only reader, block after block in cache.
///
/// Contract  equal bit for bit
/// Order     one sweep, after the sums have their steps
RewriteResult fuse_filters(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
