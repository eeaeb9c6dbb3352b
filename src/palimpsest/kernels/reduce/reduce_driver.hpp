// SPDX-License-Identifier: Apache-2.0
// Internal: reductions over any axes of one or two strided operands, or of a computed one.
#pragma once

#include <span>

#include "palimpsest/kernels/elementwise/computed_rows.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"

namespace palimpsest {

/// Most parts that the terms of few outputs are cut into.
inline constexpr index_t kMaxChunks = 64;
/// The length of each but the last: it depends on these numbers alone, not on threads.
index_t chunk_of_terms(index_t terms, index_t outputs);

/// out[kept] = reduction of leaf(x...) over the axes along which out has stride 0.
///
/// Shapes   all views have the same extents, none of them 0; an axis of one element may count as
///          either kind
/// DTypes   operands are converted to leaf.load; out has leaf.accumulate
/// Aliases  out is disjoint from the operands
void run_reduction(const ReduceLeaf& leaf, std::span<const ConstView> operands,
                   const MutableView& out);

/// The same for the elements of `rows`, which have out's extents: bit for bit what run_reduction
/// gives for them, dense in row-major order.
void run_reduction(const ReduceLeaf& leaf, const ComputedRows& rows, const MutableView& out);

}  // namespace palimpsest
