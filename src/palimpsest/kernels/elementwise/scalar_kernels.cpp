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

using Complex = std::complex<double>;

Complex plain_quotient(Complex a, Complex b) {
  const double norm2 = b.real() * b.real() + b.imag() * b.imag();
  return {(a.real() * b.real() + a.imag() * b.imag()) / norm2,
          (a.imag() * b.real() - a.real() * b.imag()) / norm2};
}

// Smith 1962, doi:10.1145/368637.368661
Complex smith_quotient(Complex a, Complex b) {
  if (std::abs(b.real()) >= std::abs(b.imag())) {
    const double ratio = b.imag() / b.real(), below = b.real() + b.imag() * ratio;
    return {(a.real() + a.imag() * ratio) / below, (a.imag() - a.real() * ratio) / below};
  }
  const double ratio = b.real() / b.imag(), below = b.imag() + b.real() * ratio;
  return {(a.real() * ratio + a.imag()) / below, (a.imag() * ratio - a.real()) / below};
}

double largest_part(Complex z) { return std::max(std::abs(z.real()), std::abs(z.imag())); }

Complex scaled(Complex z, int exponent) {
  return {std::scalbn(z.real(), exponent), std::scalbn(z.imag(), exponent)};
}

}  // namespace

Complex far_quotient(Complex a, Complex b) {
  if (b == Complex(0)) return plain_quotient(a, b);
  if (!std::isfinite(largest_part(a)) || !std::isfinite(largest_part(b))) {
    return smith_quotient(a, b);
  }
  if (a == Complex(0)) return plain_quotient(a, scaled(b, -std::ilogb(largest_part(b))));
  const int of_a = std::ilogb(largest_part(a)), of_b = std::ilogb(largest_part(b));
  return scaled(plain_quotient(scaled(a, -of_a), scaled(b, -of_b)), of_a - of_b);
}

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
