// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Rewrites the bodies of all loops, and of the loops in them, as functions of their own: what a
/// body is given is never overwritten.
void rewrite_bodies(FunctionGraph& graph, const RewriteSelection& selection);

}  // namespace palimpsest
