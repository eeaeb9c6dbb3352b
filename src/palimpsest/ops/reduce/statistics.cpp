// SPDX-License-Identifier: Apache-2.0
// Reductions that are composed of others.
#include <fmt/format.h>

#include <cmath>

#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"

namespace palimpsest::ops {
namespace {

// The number of elements of x for one element of the result, less `ddof`; of this real dtype.
Variable count_of(const Variable& x, const Axes& axes, index_t ddof, DType dtype) {
  index_t count = 1;
  for (index_t axis : axes) {
    const index_t extent = x.type().shape[static_cast<std::size_t>(axis)];
    if (extent == kUnknown) {
      const Variable n = std::make_shared<AxisCount>(axes, dtype)->make_node({&x, 1}).output(0);
      return ddof == 0 ? n : n - ddof;
    }
    count = checked_multiply(count, extent);
  }
  return WeakNumber(static_cast<double>(count - ddof)).as_variable(dtype, x.type().device);
}

Variable inexact(const Variable& x) {
  return is_inexact(x.dtype()) ? x : astype(x, DType::float64);
}

// A square root with the slope 0 at 0.
Variable root(const Variable& x) {
  const Variable is_zero = eq(x, 0);
  return where(is_zero, 0, sqrt(where(is_zero, 1, x)));
}

}  // namespace

Variable mean(const Variable& x, const ReduceOptions& options) {
  const Axes axes = reduced_axes(x, options.axes, "mean");
  const Variable total = sum(inexact(x), {axes, options.keepdims});
  return total / count_of(x, axes, 0, real_of(total.dtype()));
}

Variable var(const Variable& x, const VarianceOptions& options) {
  const Axes axes = reduced_axes(x, options.axes, "var");
  const Variable values = inexact(x);
  const Variable centre = mean(values, {axes, true});
  const Variable total = sum(abs2(values - centre), {axes, options.keepdims});
  return total / count_of(x, axes, options.ddof, total.dtype());
}

Variable std(const Variable& x, const VarianceOptions& options) { return sqrt(var(x, options)); }

Variable norm(const Variable& x, const NormOptions& options) {
  const ReduceOptions over{options.axes, options.keepdims};
  const Variable values = inexact(x);
  if (options.order == 0 || std::isnan(options.order)) {
    throw ValueError("[norm] order: got " + fmt::format("{}", options.order) +
                     ", expected another number than 0. Try sum(ne(x, 0))");
  }
  if (options.order == 2) return root(sum(abs2(values), over));
  if (options.order == 1) return sum(abs(values), over);
  if (std::isinf(options.order)) {
    return options.order > 0 ? max(abs(values), over) : min(abs(values), over);
  }
  return pow(sum(pow(abs(values), options.order), over), 1 / options.order);
}

namespace {

// exp(values - offset), with an offset for each sum so that the largest is 1. The offset cancels in
// the end: it needs no derivative. An infinite one is not used, because infinity less infinity is
// NaN.
struct ScaledExponentials {
  Variable offset, values;
  ScaledExponentials(const Variable& x, const Axes& axes) {
    const Variable largest = stop_gradient(largest_or_lowest(real(x), axes));
    offset = where(isfinite(largest), largest, 0);
    values = exp(x - offset);
  }
};

}  // namespace

Variable logsumexp(const Variable& x, const ReduceOptions& options) {
  const Axes axes = reduced_axes(x, options.axes, "logsumexp");
  const ScaledExponentials scaled(inexact(x), axes);
  const Variable result = log(sum(scaled.values, {axes, true})) + scaled.offset;
  return options.keepdims ? result : squeeze(result, axes);
}

Variable softmax(const Variable& x, const AxesArgument& axes) {
  const Axes along = reduced_axes(x, axes, "softmax");
  const ScaledExponentials scaled(inexact(x), along);
  return scaled.values / sum(scaled.values, {along, true});
}

}  // namespace palimpsest::ops
