// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/plan/plan.hpp"

namespace PALIMPSEST_API palimpsest {

struct BudgetOptions {
  /// Dimensions that may be cut; empty: all that the operator can be cut along.
  Dims candidates = {};
  /// The inputs will be arrays in mapped files: they count too, as far as one step reads them.
  bool streamed_input = false;
};

/// Result of split_to_budget(): the operator in tiles, its plan, and the sizes of its tiles.
struct BudgetSplit {
  NamedLinop op;
  Plan plan;          ///< of an application
  DimMap sizes = {};  ///< of a tile along each dimension that was cut; empty: none was
  index_t tiles = 1;
  index_t peak_bytes = 0;      ///< plan and data together
  index_t operator_bytes = 0;  ///< of this, data: see operator_bytes(), and streamed bytes
  index_t streamed_bytes = 0;  ///< of this, the most that one step reads of mapped files
};

/// Cuts an operator along named dimensions until one application fits into a number of bytes: those
/// of the operator's data, and the arena with scratch and the result, or what it takes to compute
/// stale derived data. Mapped files count only as far as one step reads them. Deterministic.
///
/// The operator itself if it fits. Else tiles are halved, again and again, along the dimension that
/// lowers the peak most for the work it adds.
///
/// Errors   BudgetError naming the smallest budget found and the sizes of its tiles; ValueError: a
///          candidate that the operator lacks, bytes below 0
/// Cost     compiles the operator once per halving and dimension; at most 1024 tiles
BudgetSplit split_to_budget(const NamedLinop& A, const TensorType& x, index_t bytes,
                            const BudgetOptions& options = {});

/// The smallest number of bytes for which split_to_budget() finds tiles.
index_t smallest_budget(const NamedLinop& A, const TensorType& x,
                        const BudgetOptions& options = {});

/// Bytes of an operator's data: each Storage of its parameters and tensor attributes counts once;
/// mapped files, which are read when needed, do not count.
index_t operator_bytes(const NamedLinop& A);

}  // namespace palimpsest
