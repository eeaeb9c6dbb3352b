// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Let ops overwrite inputs without later readers. One pass per family of ops, in order of the cost
/// of a copy: `set` and `inc`; products that are added to an array; transforms; then elementwise
/// ops, sums along an axis and the ops of users; then keys of random numbers, these only if a
/// shared variable is updated.
///
/// Contract  every replacement is validated against the whole graph. A replacement that would let a
///           reader see an overwritten value, or touch a constant, a protected input or an output,
///           is refused, noted in hints.refusals, and leaves no trace. A part of a buffer stays if
///           its new value would keep the whole alive, so that no peak of memory grows
/// Order     one sweep in topological order. All inputs that the op could overwrite at once, then
///           one of them, in this order: an input in the memory of a shared variable that gets this
///           new value; one in such memory that a later step will use for the new value; the
///           biggest; one without later readers; the leftmost
int run_updates_in_place(FunctionGraph& graph, const RewriteHints& hints);
int run_products_in_place(FunctionGraph& graph, const RewriteHints& hints);
int run_transforms_in_place(FunctionGraph& graph, const RewriteHints& hints);
int run_elementwise_in_place(FunctionGraph& graph, const RewriteHints& hints);
int run_keys_in_place(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
