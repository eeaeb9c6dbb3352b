// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Let ops overwrite inputs that nobody reads afterwards; one pass per family of ops, those first
/// whose inputs are dearest to copy: `set` and `inc`; products that are added to something;
/// transforms; then elementwise ops, sums along an axis and the ops of users; then keys of random
/// numbers, and these only where a shared variable is updated.
///
/// Contract  every replacement is validated against the whole graph; one that would let a reader
///           see an overwritten value, or touch a constant, a protected input or an output, is
///           refused, noted in hints.refusals, and leaves no trace. A part of a buffer is left
///           alone where its new value would keep the whole alive, so that no peak of memory grows
/// Order     one sweep in topological order. All inputs that the op could overwrite at once, then
///           one of them: that in the memory of a shared variable whose new value this is; that in
///           such memory where a later step is to make the new value; the biggest; what nobody
///           reads later; the leftmost
int run_updates_in_place(FunctionGraph& graph, const RewriteHints& hints);
int run_products_in_place(FunctionGraph& graph, const RewriteHints& hints);
int run_transforms_in_place(FunctionGraph& graph, const RewriteHints& hints);
int run_elementwise_in_place(FunctionGraph& graph, const RewriteHints& hints);
int run_keys_in_place(FunctionGraph& graph, const RewriteHints& hints);

/// All of them, one after the other.
int run_in_place(FunctionGraph& graph, const RewriteHints& hints);

}  // namespace palimpsest
