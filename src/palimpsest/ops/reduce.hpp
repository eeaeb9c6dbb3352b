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
Variable sum(const Variable& x, ReduceOptions options = {});
Variable prod(const Variable& x, ReduceOptions options = {});
Variable mean(const Variable& x, ReduceOptions options = {});
/// ValueError when a reduced axis has no elements; NaN wins.
Variable max(const Variable& x, ReduceOptions options = {});
Variable min(const Variable& x, ReduceOptions options = {});
Variable any(const Variable& x, ReduceOptions options = {});
Variable all_of(const Variable& x, ReduceOptions options = {});

}  // namespace palimpsest::ops
