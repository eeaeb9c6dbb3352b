// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Gives each step that could overwrite the result of a cheap op, such as alloc, its own result to
/// overwrite. Repeating the op costs less than copying, and takes no more memory than the copy.
///
/// Contract  values are unchanged, bit for bit; outputs, protected values, and readers that could
///           not write stay with the first result
/// Order     one sweep in topological order
RewriteResult split_buffers(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
