// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/scaling.hpp"

#include "palimpsest/kernels/reduce/reduce_all.hpp"
#include "palimpsest/solve/frame/prelude.hpp"

namespace palimpsest {
namespace {

// Largest parts from 2^-16 to 2^16 stay as they are.
constexpr int kFarExponent = 16;
// Squares of numbers from 2^-400 to 2^400 are normal numbers of float64.
constexpr int kExponentOfSquares = 400;

index_t real_parts_of(const Tensor& x) { return x.numel() * (is_complex(x.dtype()) ? 2 : 1); }

// Two factors whose product is 2^exponent; each of them is a normal number.
struct Factors {
  explicit Factors(int exponent)
      : first(std::ldexp(1.0, exponent / 2)), second(std::ldexp(1.0, exponent - exponent / 2)) {}
  double first, second;
};

template <class T>
bool multiply(T* values, index_t n, const Factors& by) {
  bool is_finite = true;
  for (index_t i = 0; i < n; ++i) {
    const bool was_finite = std::isfinite(values[i]);
    values[i] = static_cast<T>(static_cast<double>(values[i]) * by.first * by.second);
    is_finite &= std::isfinite(values[i]) || !was_finite;
  }
  return is_finite;
}

// The real and imaginary parts of all values. They need one more axis, if those are the most.
Tensor parts_of(const Tensor& x) {
  const Tensor here = on_host(x);
  if (!is_complex(here.dtype())) return here;
  return (here.rank() < kMaxRank ? here : here.contiguous().view({-1})).view_as_real();
}

}  // namespace

double largest_part(const Tensor& x) {
  if (x.numel() == 0) return 0;
  const Tensor parts = parts_of(x);
  if (parts.dtype() == DType::float32) {
    return reduce_all<float>(parts.view_of(), ReduceOp::max, ScalarOp::abs, parts.dtype());
  }
  return reduce_all<double>(parts.view_of(), ReduceOp::max, ScalarOp::abs, parts.dtype());
}

double largest_part(std::span<const std::complex<float>> x) {
  if (x.empty()) return 0;
  const index_t parts = 2 * static_cast<index_t>(x.size()), step = 1;
  const ConstView view{x.data(), DType::float32, {&parts, 1}, {&step, 1}};
  return reduce_all<float>(view, ReduceOp::max, ScalarOp::abs, view.dtype);
}

double safe_norm(const Tensor& x, double largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  const int exponent = std::abs(std::ilogb(largest)) > kExponentOfSquares ? std::ilogb(largest) : 0;
  Tensor scaled = x;
  if (exponent != 0) {
    scaled = on_host(x).contiguous().clone();
    multiply_by_power_of_two(scaled, -exponent);
  }
  const Tensor parts = parts_of(scaled);
  const double squares =
      reduce_all<double>(parts.view_of(), ReduceOp::sum, ScalarOp::square, DType::float64);
  return std::ldexp(std::sqrt(squares), exponent);
}

int scale_exponent(double largest, double start, DType dtype) {
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  const int of_b = std::ilogb(largest);
  if (std::abs(of_b) <= kFarExponent) return 0;
  const int range = real_of(dtype) == DType::float32 ? std::numeric_limits<float>::max_exponent
                                                     : std::numeric_limits<double>::max_exponent;
  const int exponent = std::min(-of_b, range - 2);  // 2^exponent is a number of the dtype
  if (!(start > 0) || !std::isfinite(start)) return exponent;
  // A third of the exponents: products of two such numbers fit.
  return std::min(exponent, range / 3 - std::ilogb(start));
}

bool multiply_by_power_of_two(Tensor& x, int exponent) {
  if (exponent == 0) return true;
  const bool is_away = !x.device().is_host();
  if (is_away || !x.is_contiguous()) {  // the loop goes over the elements as they lie
    Tensor dense = is_away ? x.to(Device{}) : x.clone();
    const bool is_finite = multiply_by_power_of_two(dense, exponent);
    x.copy_from(dense.to(x.device()));
    return is_finite;
  }
  const Factors by(exponent);
  if (real_of(x.dtype()) == DType::float32) {
    return multiply(static_cast<float*>(x.raw_mutable_data()), real_parts_of(x), by);
  }
  return multiply(static_cast<double*>(x.raw_mutable_data()), real_parts_of(x), by);
}

}  // namespace palimpsest
