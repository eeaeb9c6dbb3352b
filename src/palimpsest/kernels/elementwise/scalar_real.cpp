// SPDX-License-Identifier: Apache-2.0
// Functions of real floating-point numbers.
#include <cmath>
#include <numbers>

#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"

namespace palimpsest {
namespace {

#define PALIMPSEST_REAL_FUNCTION(Name, expression) \
  struct Name {                                    \
    template <class T>                             \
    static T call(T x) {                           \
      return expression;                           \
    }                                              \
  };
PALIMPSEST_REAL_FUNCTION(Reciprocal, T{1} / x)
PALIMPSEST_REAL_FUNCTION(Sqrt, std::sqrt(x))
PALIMPSEST_REAL_FUNCTION(Exp, std::exp(x))
PALIMPSEST_REAL_FUNCTION(Expm1, std::expm1(x))
PALIMPSEST_REAL_FUNCTION(Log, std::log(x))
PALIMPSEST_REAL_FUNCTION(Log1p, std::log1p(x))
PALIMPSEST_REAL_FUNCTION(Log2, std::log2(x))
PALIMPSEST_REAL_FUNCTION(Log10, std::log10(x))
PALIMPSEST_REAL_FUNCTION(Sin, std::sin(x))
PALIMPSEST_REAL_FUNCTION(Cos, std::cos(x))
PALIMPSEST_REAL_FUNCTION(Tan, std::tan(x))
PALIMPSEST_REAL_FUNCTION(Arcsin, std::asin(x))
PALIMPSEST_REAL_FUNCTION(Arccos, std::acos(x))
PALIMPSEST_REAL_FUNCTION(Arctan, std::atan(x))
PALIMPSEST_REAL_FUNCTION(Sinh, std::sinh(x))
PALIMPSEST_REAL_FUNCTION(Cosh, std::cosh(x))
PALIMPSEST_REAL_FUNCTION(Tanh, std::tanh(x))
PALIMPSEST_REAL_FUNCTION(Arcsinh, std::asinh(x))
PALIMPSEST_REAL_FUNCTION(Arccosh, std::acosh(x))
PALIMPSEST_REAL_FUNCTION(Arctanh, std::atanh(x))
PALIMPSEST_REAL_FUNCTION(Erf, std::erf(x))
// Neither form overflows on its side of 0.
PALIMPSEST_REAL_FUNCTION(Sigmoid,
                         x >= 0 ? T{1} / (T{1} + std::exp(-x)) : std::exp(x) / (T{1} + std::exp(x)))
PALIMPSEST_REAL_FUNCTION(Angle, x != x ? x : (std::signbit(x) ? std::numbers::pi_v<T> : T{0}))
#undef PALIMPSEST_REAL_FUNCTION

struct Sinc {
  template <class T>
  static T call(T x) {
    const T angle = std::numbers::pi_v<T> * x;
    return angle == 0 ? T{1} : std::sin(angle) / angle;
  }
};
struct Div {
  template <class T>
  static T call(T a, T b) {
    return a / b;
  }
};
struct Arctan2 {
  template <class T>
  static T call(T a, T b) {
    return std::atan2(a, b);
  }
};
struct Hypot {
  template <class T>
  static T call(T a, T b) {
    return std::hypot(a, b);
  }
};

template <class T>
ScalarKernel kernel_of(ScalarOp op) {
  switch (op) {
#define PALIMPSEST_CASE(name, Name) \
  case ScalarOp::name:              \
    return unary_loop<T, T, Name>;
    PALIMPSEST_CASE(reciprocal, Reciprocal)
    PALIMPSEST_CASE(sqrt, Sqrt)
    PALIMPSEST_CASE(exp, Exp)
    PALIMPSEST_CASE(expm1, Expm1)
    PALIMPSEST_CASE(log, Log)
    PALIMPSEST_CASE(log1p, Log1p)
    PALIMPSEST_CASE(log2, Log2)
    PALIMPSEST_CASE(log10, Log10)
    PALIMPSEST_CASE(sin, Sin)
    PALIMPSEST_CASE(cos, Cos)
    PALIMPSEST_CASE(tan, Tan)
    PALIMPSEST_CASE(arcsin, Arcsin)
    PALIMPSEST_CASE(arccos, Arccos)
    PALIMPSEST_CASE(arctan, Arctan)
    PALIMPSEST_CASE(sinh, Sinh)
    PALIMPSEST_CASE(cosh, Cosh)
    PALIMPSEST_CASE(tanh, Tanh)
    PALIMPSEST_CASE(arcsinh, Arcsinh)
    PALIMPSEST_CASE(arccosh, Arccosh)
    PALIMPSEST_CASE(arctanh, Arctanh)
    PALIMPSEST_CASE(erf, Erf)
    PALIMPSEST_CASE(sigmoid, Sigmoid)
    PALIMPSEST_CASE(sinc, Sinc)
    PALIMPSEST_CASE(angle, Angle)
#undef PALIMPSEST_CASE
    case ScalarOp::div:
      return binary_loop<T, T, Div>;
    case ScalarOp::arctan2:
      return binary_loop<T, T, Arctan2>;
    case ScalarOp::hypot:
      return binary_loop<T, T, Hypot>;
    default:
      return nullptr;
  }
}

}  // namespace

ScalarKernel real_function_kernel(ScalarOp op, DType working) {
  if (working == DType::float32) return kernel_of<float>(op);
  if (working == DType::float64) return kernel_of<double>(op);
  return nullptr;
}

}  // namespace palimpsest
