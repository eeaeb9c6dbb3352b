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

/// Ops of several processes that stand side by side travel as one, where there is an op that does
/// what they do; equal ones on one value become one.
///
/// Contract  equal bit for bit; all processes choose the same, since an op joins another one only
///           for where it stands in the graph. So this goes first: what other passes find out
///           differs between processes, of which one may have an empty part of an array
/// Order     one sweep by turns; a group has no other op of several processes between its members
RewriteResult join_messages(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
