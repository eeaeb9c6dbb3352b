// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"

#include <cassert>
#include <complex>

#include "palimpsest/kernels/functions/vector_functions.hpp"

namespace palimpsest {
namespace {

// Selection depends only on the element size. Conditions other than 0 are true.
template <class T>
void where_loop(const std::byte* const* sources, std::byte* out, index_t n) {
  const auto* condition = reinterpret_cast<const std::uint8_t*>(sources[0]);
  const auto* a = reinterpret_cast<const T*>(sources[1]);
  const auto* b = reinterpret_cast<const T*>(sources[2]);
  auto* r = reinterpret_cast<T*>(out);
#pragma GCC ivdep
  for (index_t i = 0; i < n; ++i) r[i] = condition[i] != 0 ? a[i] : b[i];
}

ScalarKernel where_kernel(DType dtype) {
  switch (item_size(dtype)) {
    case 1:
      return where_loop<std::uint8_t>;
    case 2:
      return where_loop<std::uint16_t>;
    case 4:
      return where_loop<std::uint32_t>;
    case 8:
      return where_loop<std::uint64_t>;
    default:
      return where_loop<std::complex<double>>;
  }
}

}  // namespace

ScalarKernel scalar_kernel(ScalarOp op, DType working) {
  if (op == ScalarOp::where) return where_kernel(working);
  ScalarKernel kernel = comparison_kernel(op, working);
  if (is_complex(working)) {
    if (kernel == nullptr) kernel = complex_vector_kernel(op, working);
    if (kernel == nullptr) kernel = complex_kernel(op, working);
    if (kernel == nullptr) kernel = complex_function_kernel(op, working);
  } else {
    if (kernel == nullptr) kernel = exponential_kernel(op, working);
    if (kernel == nullptr) kernel = logarithm_kernel(op, working);
    if (kernel == nullptr) kernel = trigonometric_kernel(op, working);
    if (kernel == nullptr) kernel = real_arithmetic_kernel(op, working);
    if (kernel == nullptr) kernel = real_function_kernel(op, working);
  }
  assert(kernel != nullptr);
  return kernel;
}

}  // namespace palimpsest
