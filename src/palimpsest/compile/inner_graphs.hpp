// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Leaves out of every loop the outputs that nobody uses, and what only they need.
void drop_unused_of_loops(FunctionGraph& graph);
/// Rewrites the bodies of all loops, and of the loops in them, as functions of their own: what a
/// body is given is never overwritten.
void rewrite_bodies(FunctionGraph& graph, const RewriteSelection& selection);

}  // namespace palimpsest
