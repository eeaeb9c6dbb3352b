// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Computes values that depend on constants only.
///
/// Contract  values are unchanged, bit for bit: the kernels are those of a call. Results that are
///           bigger than their inputs, and more than a few elements, stay; so do views of many
///           elements, loops, branches, and ops that can fail
/// Order     one sweep in topological order, so that whole expressions are folded
RewriteResult fold_constants(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
