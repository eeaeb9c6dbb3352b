// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest::ops {

struct ReduceOptions {
  /// Absent: all axes.
  std::optional<Axes> axes;
  bool keepdims = false;
};

/// Accurate at least as pairwise summation in the dtype; bool and integers sum in int64/uint64.
Variable sum(const Variable& x, const ReduceOptions& options = {});
Variable prod(const Variable& x, const ReduceOptions& options = {});
Variable mean(const Variable& x, const ReduceOptions& options = {});
/// ValueError when a reduced axis has no elements; NaN wins.
Variable max(const Variable& x, const ReduceOptions& options = {});
Variable min(const Variable& x, const ReduceOptions& options = {});
Variable any(const Variable& x, const ReduceOptions& options = {});
Variable all_of(const Variable& x, const ReduceOptions& options = {});

}  // namespace palimpsest::ops
