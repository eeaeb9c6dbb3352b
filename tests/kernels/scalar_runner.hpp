// SPDX-License-Identifier: Apache-2.0
// Runs one scalar op on a few values of one dtype.
#pragma once

#include "kernels/arrays.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"

namespace palimpsest::testing {

/// Runs op on dense arrays: each operand is a vector of T, the result a vector of R.
template <class R, class T>
std::vector<R> apply(ScalarOp op, const std::vector<std::vector<T>>& operands) {
  const auto n = static_cast<index_t>(operands[0].size());
  std::vector<Array> arrays;
  std::vector<DType> dtypes;
  std::vector<ConstView> views;
  arrays.reserve(operands.size());
  for (const auto& operand : operands) {
    arrays.emplace_back(dtype_of<T>, Extents{n});
    for (index_t i = 0; i < n; ++i) {
      arrays.back().template set<T>(i, operand[static_cast<std::size_t>(i)]);
    }
    dtypes.push_back(dtype_of<T>);
    views.push_back(arrays.back().view());
  }
  const ElementwiseProgram program(op, dtypes);
  Array out(result_dtype(op, dtypes), {n});
  run_elementwise(program, views, std::array{out.mutable_view()});
  std::vector<R> result;
  for (index_t i = 0; i < n; ++i) result.push_back(out.get<R>(i));
  return result;
}

}  // namespace palimpsest::testing
