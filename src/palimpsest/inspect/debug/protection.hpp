// SPDX-License-Identifier: Apache-2.0
// Internal: what DebugMode checks about a rewritten graph itself.
#pragma once

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {

/// InternalError when an op that claims to overwrite an output or a protected input would be
/// accepted.
void check_protection(const FunctionGraph& graph);

/// InternalError when the analysis that followed all edits and one made from scratch differ in what
/// they say about the graph.
void check_alias_state(const FunctionGraph& graph);

}  // namespace palimpsest
