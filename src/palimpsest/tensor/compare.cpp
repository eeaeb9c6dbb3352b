// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <cstring>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

bool is_close(std::complex<double> a, std::complex<double> b, double rtol, double atol) {
  // Equal infinities are close although their difference is NaN.
  if (a == b) return true;
  const double distance = std::abs(a - b);
  return std::isfinite(distance) && distance <= atol + rtol * std::abs(b);
}

void check_same_device(const Tensor& a, const Tensor& b, const char* who) {
  if (a.device() == b.device()) return;
  throw DeviceError(std::string("[") + who + "] devices differ: got " + a.device().str() + " and " +
                    b.device().str() + ". Try to() first.");
}

}  // namespace

bool equal(const Tensor& a, const Tensor& b) {
  check_same_device(a, b, "equal");
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor dense_a = on_host(a).contiguous(), dense_b = on_host(b).contiguous();
  const auto bytes = static_cast<std::size_t>(a.nbytes());
  return bytes == 0 || std::memcmp(dense_a.raw_data(), dense_b.raw_data(), bytes) == 0;
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  check_same_device(a, b, "allclose");
  const Extents shape = broadcast_extents(a.shape(), b.shape(), "allclose");
  const auto elements = [&shape](const Tensor& t) {
    return on_host(t).to(DType::complex128).expand(shape).contiguous();
  };
  const Tensor wide_a = elements(a), wide_b = elements(b);
  const auto* const x = wide_a.data<std::complex<double>>();
  const auto* const y = wide_b.data<std::complex<double>>();
  const index_t count = wide_a.numel();
  for (index_t i = 0; i < count; ++i) {
    if (!is_close(x[i], y[i], rtol, atol)) return false;
  }
  return true;
}

}  // namespace palimpsest
