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

/// Reduces the output of a program over all elements, outside of any function, on the threads of
/// the config.
///
/// Shapes   those of run_fused_reduce; max and min need at least one element
/// DTypes   Result is that of op for the output
template <class Result>
Result reduce_all(ReduceOp op, const ElementwiseProgram& program,
                  std::span<const ConstView> inputs) {
  SmallVector<index_t, 8> axes(inputs[0].rank(), 0);
  std::iota(axes.begin(), axes.end(), index_t{0});
  Result result{};
  run_with_threads(static_cast<int>(config().threads.value_or(0)), [&] {
    run_fused_reduce(op, program, inputs, axes, {&result, dtype_of<Result>, {}, {}});
  });
  return result;
}

/// The same for f(x), x converted to `dtype` first.
template <class Result>
Result reduce_all(const ConstView& x, ReduceOp op, ScalarOp f, DType dtype) {
  return reduce_all<Result>(op, ElementwiseProgram(f, std::array{dtype}), std::array{x});
}

}  // namespace palimpsest
