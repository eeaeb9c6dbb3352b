// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Sums of sums and products of products are looked at as one: equal terms of a sum become a
/// multiple of one of them, numbers among terms or factors become one number.
///
/// Contract  equal up to rounding. Terms that cancel stay, since infinity less itself is no number;
///           so do numbers whose product overflows or vanishes, and what something else reads.
///           Only expressions that get shorter are changed
/// Order     one sweep, outermost sums and products first
RewriteResult collect_terms(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
