// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {

/// Lets ops that round by layout read dense arrays, so that their bits depend on values alone.
///
/// Pass      after all others, in modes in which nothing reorders arithmetic
/// Contract  an operand that may lie otherwise goes through Contiguous, which copies only if it
///           does; operands that are overwritten stay
void make_operands_dense(FunctionGraph& graph);

}  // namespace palimpsest
