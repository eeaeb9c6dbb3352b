// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/linop_type.hpp"
#include "palimpsest/solve/frame/solver.hpp"

namespace PALIMPSEST_API palimpsest {

/// Takes the result of a part of a block; `where` says which slices of the dimensions it has. The
/// result may be moved away.
using Sink = std::function<void(const Tile& where, SolveResult& part)>;

struct BatchesOptions {
  /// Dimensions of x along which the problem is separable and may be cut. They are the batch of
  /// each run; `solve.batch` is ignored.
  Dims dims;
  /// Limit on the bytes of a run, its part of the data, and the whole x if there is no sink. Unset:
  /// the config's budget; without one everything is one run.
  std::optional<index_t> bytes = {};
  Sink sink = {};
  /// Options of each run; limits of time and iterations hold for one run. No checkpoints.
  SolveOptions solve = {};
};

struct BatchesPlan {
  DimMap sizes = {};  ///< of a part; the last ones may be shorter
  index_t runs = 1;
  index_t peak_bytes = 0;  ///< of all that is made
};

struct BatchesResult {
  /// All parts together: x, undefined with a sink; the worst status; batch_status and
  /// batch_iterations of all elements, row-major in the order of the dims; applications of all
  /// runs. The history is that of the parts.
  SolveResult all;
  DimMap sizes = {};
  index_t runs = 0;
  index_t solvers = 0;  ///< that were compiled: runs of one shape share one
};

/// Solves a block of independent problems in as many runs as the memory needs, with the largest
/// parts that fit. Parts of one shape share a compiled solver; its operators get the values of each
/// part. Parts of the full size run first.
///
/// Order    dims are cut one after the other, each down to single elements before the next
/// Memory   b, x0 and the operators belong to the caller: a part of b and x0 is copied, operators
///          are not
/// Errors   ValueError "dims": the list is empty; "checkpoint": is set; SplitError: a dimension
///          along which an operator is not separable, or a proximal function with a parameter that
///          has axes; BudgetError: not even single elements fit; those of Solver
BatchesResult solve_in_batches(const SolverType& type, const Problem& problem, const Tensor& b,
                               const BatchesOptions& options);
BatchesPlan plan_batches(const SolverType& type, const Problem& problem,
                         const BatchesOptions& options);

}  // namespace palimpsest
