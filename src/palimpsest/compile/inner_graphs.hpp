// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Rewrites the bodies of all loops, and of the loops in them, as functions of their own. A body
/// overwrites only one kind of input: the memory of a state whose old value no other step reads,
/// and only by the step that computes the new value of this state. Features follow the outermost
/// graph only.
void rewrite_bodies(FunctionGraph& graph, const RewriteOptions& options,
                    std::vector<RewriteProfile>* reports = nullptr,
                    std::vector<InplaceRefusal>* refusals = nullptr);

}  // namespace palimpsest
