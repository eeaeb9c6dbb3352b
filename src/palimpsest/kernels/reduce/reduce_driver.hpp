// SPDX-License-Identifier: Apache-2.0
// Internal: reductions over any axes of one or two strided operands, or of one computed operand.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "palimpsest/kernels/elementwise/computed_rows.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"

namespace palimpsest {

/// Maximum number of parts into which the terms of few outputs are cut.
inline constexpr index_t kMaxChunks = 64;
/// The number of terms of a part; the last one may be shorter. Independent of the number of
/// threads.
index_t chunk_of_terms(index_t terms, index_t outputs);

/// out[kept] = reduction of leaf(x...) over the axes along which out has stride 0.
///
/// Shapes   all views have the same extents, none of them 0; an axis of one element may count as
///          either kind
/// DTypes   operands are converted to leaf.load; out has leaf.accumulate
/// Aliases  out is disjoint from the operands
void run_reduction(const ReduceLeaf& leaf, std::span<const ConstView> operands,
                   const MutableView& out);

/// Reduces the elements of `rows`, which have out's extents: the same bits as run_reduction of a
/// dense row-major array.
void run_reduction(const ReduceLeaf& leaf, const ComputedRows& rows, const MutableView& out);

/// The order in which run_reduction combines terms, for kernels of accelerators that take the same.
///
/// Terms of an output are numbered in row-major order over the reduced axes, and outputs over the
/// kept ones; chunks are combined in pairs. Horizontal form: a leaf is a run of at most
/// kLeafElements terms along the innermost reduced axis; vertical form: kLeafRows terms. Leaves of
/// a chunk are paired as a Cascade does.
struct ReductionOrder {
  struct Axis {
    index_t extent = 1;
    std::array<index_t, 3> steps{};  ///< of out and of the operands, in bytes
  };
  std::vector<Axis> kept, reduced;   ///< outermost first
  std::array<index_t, 3> offsets{};  ///< of the first output and term, in bytes
  bool vertical = false;
  index_t outputs = 1, terms = 1, chunk = 1, chunks = 1;
};
/// For views of layouts alone: addresses are not read. The rest as for run_reduction.
ReductionOrder reduction_order(const ReduceLeaf& leaf, std::span<const ConstView> operands,
                               const MutableView& out);

}  // namespace palimpsest
