// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/linop/core/workers.hpp"

namespace PALIMPSEST_API palimpsest {

struct ConcatDims {
  /// The dimension along which the input is cut, and the one along which outputs are joined.
  std::optional<ND> in = {}, out = {};
  /// True if children may run side by side; num_workers says how many. See Workers.
  bool threaded = true;
  index_t num_workers = 0;
};
/// Operators side by side along a dimension that they have. `in` alone sums their results for parts
/// of the input; `out` alone joins their results for one input; both give a block diagonal
/// operator.
///
/// Math     N: of `out` the sum of the N, of both the Concat of the N along `in`, of `in` composed
/// Shapes   the dimension's size is the sum of the children's sizes of it
/// Aliases  keeps a shallow copy of each operator
/// Errors   ValueError "at least one", "At least one" of in and out, "num_workers"; ShapeError:
///          shapes that differ, "undefined size", "Conflicting" sizes
NamedLinop Concat(std::vector<NamedLinop> linops, ConcatDims along);
/// Operators side by side, for parts of the input and of the output: Concat along both dimensions.
NamedLinop BlockDiagonal(std::vector<NamedLinop> linops, ND in, ND out);

/// The children that a range meets, each with the part that it meets: child i has boundaries[i] to
/// boundaries[i + 1].
/// Errors   ValueError "first boundary" (not 0), "non-decreasing", "out of range", "step"
std::vector<std::pair<std::size_t, Slice>> partition_slices(std::span<const index_t> boundaries,
                                                            const Slice& range);

}  // namespace palimpsest
