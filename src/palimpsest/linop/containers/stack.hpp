// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/linop/core/workers.hpp"

namespace PALIMPSEST_API palimpsest {

/// A new dimension and where it is inserted: 0..n, or negative from the end.
struct StackAxis {
  StackAxis() = default;
  StackAxis(ND d, index_t pos) : dim(d), position(pos) {}
  std::optional<ND> dim;
  index_t position = 0;
};
struct StackDims {
  StackAxis in = {}, out = {};
  /// True if children may run side by side; num_workers says how many. See Workers.
  bool threaded = true;
  index_t num_workers = 0;
};
/// Operators side by side along a new dimension. `in` alone sums their results for parts of the
/// input; `out` alone stacks their results for one input; both give a block diagonal operator.
///
/// Math     N: of `out` the sum of the N, of both the Stack of the N along `in`, of `in` composed
/// Shapes   the dimension's size is the number of operators
/// Aliases  keeps a shallow copy of each operator
/// Errors   ValueError "at least one", "At least one" of in and out, "position", "num_workers";
///          ShapeError: shapes that differ, "already contains", "Conflicting" sizes
NamedLinop Stack(std::vector<NamedLinop> linops, StackDims along);

}  // namespace palimpsest
