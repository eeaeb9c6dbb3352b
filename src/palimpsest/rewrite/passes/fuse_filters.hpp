// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// What a stencil makes, such as a finite difference, is computed in the elementwise step with sums
/// that alone reads it, block after block in cache.
///
/// Contract  equal bit for bit
/// Order     one sweep, after the sums have their steps
RewriteResult fuse_filters(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
