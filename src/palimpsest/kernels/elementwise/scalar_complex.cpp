// SPDX-License-Identifier: Apache-2.0
// Arithmetic and functions of complex numbers, except those of vector_functions.hpp. Products and
// quotients are the plain formulas, the latter where they are safe: the operators of std::complex
// would call slow functions that repair infinities.
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
// This file is compiled once per instruction set; the best one is chosen when the program runs.

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/elementwise/scalar_complex.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/elementwise/scalar_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

template <class T>
using Complex = std::complex<T>;

template <class T>
Complex<T> product(Complex<T> a, Complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Single precision is computed in double, where |b|^2 neither overflows nor underflows.
template <class T>
Complex<T> quotient(Complex<T> a, Complex<T> b) {
  return Complex<T>(safe_quotient(Complex<double>(a), Complex<double>(b)));
}

inline float magnitude(Complex<float> a) {
  const double re = a.real(), im = a.imag();
  return static_cast<float>(std::sqrt(re * re + im * im));
}
inline double magnitude(Complex<double> a) {
  const double square = a.real() * a.real() + a.imag() * a.imag();
  return is_safe_norm2(square) ? std::sqrt(square) : far_magnitude(a.real(), a.imag());
}

// Small integer exponents use multiplication, which is exact for Gaussian integers.
template <class T>
Complex<T> power(Complex<T> a, Complex<T> b) {
  if (b == Complex<T>(0)) return {1, 0};
  if (a == Complex<T>(0) && b.real() > 0) return {0, 0};
  if (b.imag() == 0 && std::abs(b.real()) <= 64 && b.real() == std::nearbyint(b.real())) {
    Complex<T> result(1), factor = a;
    for (int rest = std::abs(static_cast<int>(b.real())); rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) result = product(result, factor);
      factor = product(factor, factor);
    }
    return b.real() < 0 ? quotient(Complex<T>(1), result) : result;
  }
  return std::pow(a, b);
}

struct Add {
  template <class C>
  static C call(C a, C b) {
    return {a.real() + b.real(), a.imag() + b.imag()};
  }
};
struct Sub {
  template <class C>
  static C call(C a, C b) {
    return {a.real() - b.real(), a.imag() - b.imag()};
  }
};
struct Mul {
  template <class C>
  static C call(C a, C b) {
    return product(a, b);
  }
};
struct Div {
  template <class C>
  static C call(C a, C b) {
    return quotient(a, b);
  }
};
struct Pow {
  template <class C>
  static C call(C a, C b) {
    return power(a, b);
  }
};
struct Fma {
  template <class C>
  static C call(C a, C b, C c) {
    return Add::call(product(a, b), c);
  }
};

#define PALIMPSEST_COMPLEX_FUNCTION(Name, expression) \
  struct Name {                                       \
    template <class C>                                \
    static auto call(C x) {                           \
      using T = typename C::value_type;               \
      const T re = x.real(), im = x.imag();           \
      static_cast<void>(re);                          \
      static_cast<void>(im);                          \
      return expression;                              \
    }                                                 \
  };
PALIMPSEST_COMPLEX_FUNCTION(Neg, C(-re, -im))
PALIMPSEST_COMPLEX_FUNCTION(Conj, C(re, -im))
PALIMPSEST_COMPLEX_FUNCTION(Square, product(x, x))
PALIMPSEST_COMPLEX_FUNCTION(Reciprocal, quotient(C(1), x))
PALIMPSEST_COMPLEX_FUNCTION(Round, C(std::nearbyint(re), std::nearbyint(im)))
PALIMPSEST_COMPLEX_FUNCTION(Abs2, re* re + im * im)
PALIMPSEST_COMPLEX_FUNCTION(Real, re)
PALIMPSEST_COMPLEX_FUNCTION(Imag, im)
PALIMPSEST_COMPLEX_FUNCTION(Sin, std::sin(x))
PALIMPSEST_COMPLEX_FUNCTION(Cos, std::cos(x))
PALIMPSEST_COMPLEX_FUNCTION(Tan, std::tan(x))
PALIMPSEST_COMPLEX_FUNCTION(Arcsin, std::asin(x))
PALIMPSEST_COMPLEX_FUNCTION(Arccos, std::acos(x))
PALIMPSEST_COMPLEX_FUNCTION(Arctan, std::atan(x))
PALIMPSEST_COMPLEX_FUNCTION(Sinh, std::sinh(x))
PALIMPSEST_COMPLEX_FUNCTION(Cosh, std::cosh(x))
PALIMPSEST_COMPLEX_FUNCTION(Tanh, std::tanh(x))
PALIMPSEST_COMPLEX_FUNCTION(Arcsinh, std::asinh(x))
PALIMPSEST_COMPLEX_FUNCTION(Arccosh, std::acosh(x))
PALIMPSEST_COMPLEX_FUNCTION(Arctanh, std::atanh(x))
#undef PALIMPSEST_COMPLEX_FUNCTION

// log|1 + x| = log(1 + (|1 + x|^2 - 1)) / 2 is accurate for small x, but not for x near -1.
struct Log1p {
  template <class C>
  static C call(C x) {
    using T = typename C::value_type;
    const T re = x.real(), im = x.imag();
    if (std::abs(re) > T{0.5} || std::abs(im) > T{0.5}) return std::log(C(T{1} + re, im));
    return {T{0.5} * std::log1p(re * (T{2} + re) + im * im), std::atan2(im, T{1} + re)};
  }
};
// Of an infinite x the direction that angle() gives.
struct Sign {
  template <class C>
  static C call(C x) {
    using T = typename C::value_type;
    const auto size = magnitude(x);
    if (std::isinf(size)) [[unlikely]] {
      const C smaller(x.real() * T{0.25}, x.imag() * T{0.25});
      return std::isinf(magnitude(smaller)) ? unit(C(end(x.real()), end(x.imag()))) : unit(smaller);
    }
    return size == 0 ? C(0) : C(x.real() / size, x.imag() / size);
  }

 private:
  template <class T>
  static T end(T x) {
    return std::isinf(x) ? std::copysign(T{1}, x) : x * 0;
  }
  template <class C>
  static C unit(C x) {
    const auto size = magnitude(x);
    return {x.real() / size, x.imag() / size};
  }
};
struct Log2 {
  template <class C>
  static C call(C x) {
    using T = typename C::value_type;
    const C y = std::log(x);
    return {y.real() * std::numbers::log2e_v<T>, y.imag() * std::numbers::log2e_v<T>};
  }
};
struct Log10 {
  template <class C>
  static C call(C x) {
    using T = typename C::value_type;
    const C y = std::log(x);
    return {y.real() * std::numbers::log10e_v<T>, y.imag() * std::numbers::log10e_v<T>};
  }
};
// exp(re) cos(im) - 1 = expm1(re) cos(im) - 2 sin(im / 2)^2 is accurate for small x.
struct Expm1 {
  template <class C>
  static C call(C x) {
    using T = typename C::value_type;
    const T half = std::sin(x.imag() / 2);
    return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half,
            std::exp(x.real()) * std::sin(x.imag())};
  }
};
struct Sinc {
  template <class C>
  static C call(C x) {
    using T = typename C::value_type;
    const C angle(x.real() * std::numbers::pi_v<T>, x.imag() * std::numbers::pi_v<T>);
    return angle == C(0) ? C(1) : quotient(C(std::sin(angle)), angle);
  }
};
// Each formula is used on the side of 0 where it does not overflow.
struct Sigmoid {
  template <class C>
  static C call(C x) {
    if (x.real() >= 0) return quotient(C(1), C(1) + std::exp(-x));
    const C e = std::exp(x);
    return quotient(e, C(1) + e);
  }
};

template <class T>
ScalarKernel arithmetic_of(ScalarOp op) {
  using C = Complex<T>;
  switch (op) {
    case ScalarOp::add:
      return binary_loop<C, C, Add>;
    case ScalarOp::sub:
      return binary_loop<C, C, Sub>;
    case ScalarOp::mul:
      return binary_loop<C, C, Mul>;
    case ScalarOp::div:
      return binary_loop<C, C, Div>;
    case ScalarOp::pow:
      return binary_loop<C, C, Pow>;
    case ScalarOp::fma:
      return ternary_loop<C, C, Fma>;
    case ScalarOp::abs2:
      return unary_loop<C, T, Abs2>;
    case ScalarOp::real:
      return unary_loop<C, T, Real>;
    case ScalarOp::imag:
      return unary_loop<C, T, Imag>;
    default:
      return nullptr;
  }
}

template <class T>
ScalarKernel function_of(ScalarOp op) {
  using C = Complex<T>;
  switch (op) {
#define PALIMPSEST_CASE(name, Name) \
  case ScalarOp::name:              \
    return unary_loop<C, C, Name>;
    PALIMPSEST_CASE(neg, Neg)
    PALIMPSEST_CASE(conj, Conj)
    PALIMPSEST_CASE(sign, Sign)
    PALIMPSEST_CASE(square, Square)
    PALIMPSEST_CASE(reciprocal, Reciprocal)
    PALIMPSEST_CASE(round, Round)
    PALIMPSEST_CASE(expm1, Expm1)
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
    PALIMPSEST_CASE(sinc, Sinc)
    PALIMPSEST_CASE(sigmoid, Sigmoid)
#undef PALIMPSEST_CASE
    default:
      return nullptr;
  }
}

}  // namespace

ScalarKernel complex_loop(ScalarOp op, DType working) {
  if (working == DType::complex64) return arithmetic_of<float>(op);
  if (working == DType::complex128) return arithmetic_of<double>(op);
  return nullptr;
}

ScalarKernel complex_function_loop(ScalarOp op, DType working) {
  if (working == DType::complex64) return function_of<float>(op);
  if (working == DType::complex128) return function_of<double>(op);
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(complex_loop);

ScalarKernel complex_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(complex_loop)(op, working);
}

HWY_EXPORT(complex_function_loop);

ScalarKernel complex_function_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(complex_function_loop)(op, working);
}

}  // namespace palimpsest
#endif
