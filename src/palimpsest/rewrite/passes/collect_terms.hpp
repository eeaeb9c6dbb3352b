// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Collects terms of nested sums and factors of nested products: equal terms of a sum become a
/// multiple of one of them, numbers among terms or factors become one number.
///
/// Contract  equal up to rounding. Terms that cancel stay, because infinity less itself is NaN; so
///           do numbers whose product overflows or vanishes, and values with other readers. Only
///           expressions that get shorter are changed
/// Order     one sweep, outermost sums and products first
RewriteResult collect_terms(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
