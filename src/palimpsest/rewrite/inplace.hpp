// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Lets ops overwrite inputs that nobody reads afterwards.
///
/// Contract  every replacement is validated against the whole graph; one that would let a reader
///           see an overwritten value, or touch a constant, a protected input or an output, is
///           refused and leaves no trace
/// Order     one sweep in topological order. Inputs in the memory that the result is to end in
///           come first, then the biggest, then the leftmost
int run_in_place(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
