// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/scaling.hpp"

#include "palimpsest/solve/frame/prelude.hpp"

namespace palimpsest {
namespace {

// Largest parts from 2^-16 to 2^16 stay as they are.
constexpr int kFarExponent = 16;

index_t real_parts_of(const Tensor& x) { return x.numel() * (is_complex(x.dtype()) ? 2 : 1); }

// Calls f with a pointer to the real numbers of a contiguous tensor and their count.
template <class F>
auto visit_parts(const Tensor& x, F&& f) {
  const Tensor dense = x.contiguous();
  if (real_of(x.dtype()) == DType::float32) {
    return f(static_cast<const float*>(dense.raw_data()), real_parts_of(dense));
  }
  return f(static_cast<const double*>(dense.raw_data()), real_parts_of(dense));
}

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

}  // namespace

double largest_part(const Tensor& x) {
  return visit_parts(x, [](const auto* values, index_t n) {
    double largest = 0;
    for (index_t i = 0; i < n; ++i) {
      const auto size = static_cast<double>(std::abs(values[i]));
      if (!(size <= largest)) largest = size;
      if (std::isnan(size)) break;
    }
    return largest;
  });
}

double safe_norm(const Tensor& x) {
  const double largest = largest_part(x);
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  int exponent = 0;
  std::frexp(largest, &exponent);
  const Factors by(-exponent);
  const double squares = visit_parts(x, [&](const auto* values, index_t n) {
    double sum = 0;
    for (index_t i = 0; i < n; ++i) {
      const double part = static_cast<double>(values[i]) * by.first * by.second;
      sum += part * part;
    }
    return sum;
  });
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
  const Factors by(exponent);
  if (real_of(x.dtype()) == DType::float32) {
    return multiply(static_cast<float*>(x.raw_mutable_data()), real_parts_of(x), by);
  }
  return multiply(static_cast<double*>(x.raw_mutable_data()), real_parts_of(x), by);
}

}  // namespace palimpsest
