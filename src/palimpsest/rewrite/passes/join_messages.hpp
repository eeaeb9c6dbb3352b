// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Gives the ops of several processes their turns, in the order in which a walk from the outputs
/// leaves them, and keeps that order in the graph from here on.
///
/// Contract  equal on all processes for graphs that differ only in steps of one process
void order_messages(FunctionGraph& graph);

/// Joins ops of several processes that stand side by side into one exchange, if there is such an
/// op. Equal ops on one value become one.
///
/// Contract  equal bit for bit; all processes choose the same, because the choice depends only on
///           the places of the ops in the graph. So this pass goes first: results of other passes
///           differ between processes, for example if one has an empty part of an array
/// Order     one sweep by turns; a group has no other op of several processes between its members
RewriteResult join_messages(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
