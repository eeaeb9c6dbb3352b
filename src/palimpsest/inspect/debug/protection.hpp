// SPDX-License-Identifier: Apache-2.0
// Internal: checks of DebugMode on a rewritten graph itself.
#pragma once

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest {

/// InternalError when an op that claims to overwrite an output or a protected input would be
/// accepted.
void check_protection(const FunctionGraph& graph);

/// InternalError when the analysis that followed all edits differs from one made from scratch.
void check_alias_state(const FunctionGraph& graph);

}  // namespace palimpsest
