// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <numeric>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/small_vector.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/reduce.hpp"

namespace palimpsest {

/// Reduces f of all values, outside of any function, on the threads of the config.
///
/// Math     op over f(x), x converted to `dtype` first
/// Shapes   any strides; max and min need at least one value
/// DTypes   Result is that of f and op for `dtype`
template <class Result>
Result reduce_all(const ConstView& x, ReduceOp op, ScalarOp f, DType dtype) {
  const ElementwiseProgram program(f, std::array{dtype});
  SmallVector<index_t, 8> axes(x.rank(), 0);
  std::iota(axes.begin(), axes.end(), index_t{0});
  Result result{};
  run_with_threads(static_cast<int>(config().threads.value_or(0)), [&] {
    run_fused_reduce(op, program, std::array{x}, axes, {&result, dtype_of<Result>, {}, {}});
  });
  return result;
}

}  // namespace palimpsest
