// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Rewrites the bodies of all loops, and of the loops in them, as functions of their own: what a
/// body is given is never overwritten. Features follow the outermost graph only.
void rewrite_bodies(FunctionGraph& graph, const RewriteOptions& options,
                    std::vector<RewriteProfile>* reports = nullptr);

}  // namespace palimpsest
