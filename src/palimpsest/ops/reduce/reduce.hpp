// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// `max(x, {.axes = {0}})`, `max(x, {.axes = 0})`, `max(x, {.axes = {0, 1}, .keepdims = true})`.
struct ReduceOptions {
  /// Absent: all axes.
  AxesArgument axes = {};
  /// Reduced axes stay, with one element.
  Flag keepdims = false;
};

/// Accurate at least as pairwise summation in the dtype; bool and integers sum in int64/uint64.
Variable sum(const Variable& x, const ReduceOptions& options = {});
Variable prod(const Variable& x, const ReduceOptions& options = {});
/// ValueError when a reduced axis has no elements; NaN wins.
Variable max(const Variable& x, const ReduceOptions& options = {});
Variable min(const Variable& x, const ReduceOptions& options = {});
/// Logical reductions of any dtype: every number but 0 is true. `all_of`, because `all` is an
/// index.
Variable any(const Variable& x, const ReduceOptions& options = {});
Variable all_of(const Variable& x, const ReduceOptions& options = {});

/// Position of the first extremum, int64, counted row-major over the reduced axes; NaN wins.
/// Errors   ValueError: a reduced axis has no elements; DTypeError: complex numbers
Variable argmax(const Variable& x, const ReduceOptions& options = {});
Variable argmin(const Variable& x, const ReduceOptions& options = {});

/// The mean; for integers and bools in float64.
Variable mean(const Variable& x, const ReduceOptions& options = {});

struct VarianceOptions {
  AxesArgument axes = {};
  Flag keepdims = false;
  /// The sum of squares is divided by the number of elements less this.
  index_t ddof = 0;
};
/// Mean of |x - mean(x)|^2, in two passes; real.
Variable var(const Variable& x, const VarianceOptions& options = {});
/// The standard deviation: the square root of var().
Variable std(const Variable& x, const VarianceOptions& options = {});

struct NormOptions {
  AxesArgument axes = {};
  Flag keepdims = false;
  /// (sum |x|^order)^(1/order); infinity: the largest |x|, -infinity: the smallest.
  double order = 2;
};
/// The norm of some axes, real; that of order 2 has the gradient 0 at 0.
/// Errors   ValueError: order 0
Variable norm(const Variable& x, const NormOptions& options = {});

/// log(sum(exp(x))) without overflow; -infinity of no elements.
Variable logsumexp(const Variable& x, const ReduceOptions& options = {});
/// exp(x) / sum(exp(x)) without overflow, over some axes or over all.
Variable softmax(const Variable& x, const AxesArgument& axes = {});

/// Sums, or products, of the elements up to each one along an axis; without an axis over the array
/// in row-major order. bool and integers in int64/uint64.
/// Aliases  an in-place variant overwrites its input
Variable cumsum(const Variable& x, std::optional<index_t> axis = {});
Variable cumprod(const Variable& x, std::optional<index_t> axis = {});

}  // namespace ops
}  // namespace palimpsest
