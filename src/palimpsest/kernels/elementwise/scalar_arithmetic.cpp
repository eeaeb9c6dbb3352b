// SPDX-License-Identifier: Apache-2.0
// Arithmetic of bools, integers and real floating-point numbers.
#include <cmath>
#include <complex>
#include <limits>
// This file is compiled once per instruction set; the best one is chosen when the program runs.

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/elementwise/scalar_arithmetic.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/elementwise/scalar_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

// Integers are computed modulo 2^n in an unsigned type that is not promoted to int; floats in their
// own type.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, T,
                                std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>;
template <class T>
Wide<T> wide(T x) {
  return static_cast<Wide<T>>(x);
}

struct Add {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(wide(a) + wide(b));
  }
};
struct Sub {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(wide(a) - wide(b));
  }
};
struct Mul {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(wide(a) * wide(b));
  }
};
struct Fma {
  template <class T>
  static T call(T a, T b, T c) {
    return static_cast<T>(wide(a) * wide(b) + wide(c));
  }
};
struct Neg {
  template <class T>
  static T call(T a) {
    if constexpr (std::is_floating_point_v<T>) {
      return -a;
    } else {
      return static_cast<T>(Wide<T>{0} - wide(a));
    }
  }
};
struct Abs {
  template <class T>
  static T call(T a) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(a);
    } else {
      return std::is_signed_v<T> && a < T{0} ? Neg::call(a) : a;
    }
  }
};
struct Sign {
  template <class T>
  static T call(T a) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a) return a;
    }
    return static_cast<T>(static_cast<int>(a > T{0}) - static_cast<int>(a < T{0}));
  }
};
struct Square {
  template <class T>
  static T call(T a) {
    return Mul::call(a, a);
  }
};
struct Minimum {
  template <class T>
  static T call(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct Maximum {
  template <class T>
  static T call(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

struct Clip {
  template <class T>
  static T call(T x, T low, T high) {
    return Minimum::call(Maximum::call(x, low), high);
  }
};

// Quotient and remainder of integers, rounded towards minus infinity; 0 and 0 for a zero divisor.
template <class T>
struct Division {
  T quotient, remainder;
  Division(T a, T b) {
    if (b == 0) {
      quotient = remainder = 0;
      return;
    }
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) {  // the lowest number divided by -1 wraps
        quotient = Neg::call(a);
        remainder = 0;
        return;
      }
    }
    quotient = static_cast<T>(a / b);
    remainder = static_cast<T>(a % b);
    if (remainder != 0 && (remainder < 0) != (b < 0)) {
      quotient = static_cast<T>(quotient - 1);
      remainder = static_cast<T>(remainder + b);
    }
  }
};

struct Mod {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const T rest = std::fmod(a, b);
      if (rest == 0) return std::copysign(T{0}, b);
      return (rest < 0) != (b < 0) ? rest + b : rest;
    } else {
      return Division<T>(a, b).remainder;
    }
  }
};
struct FloorDiv {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == 0) return a / b;
      const T rest = std::fmod(a, b);
      T quotient = (a - rest) / b;
      if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
      if (quotient == 0) return std::copysign(T{0}, a / b);
      const T floor = std::floor(quotient);
      return quotient - floor > T{0.5} ? floor + 1 : floor;  // the division may have rounded down
    } else {
      return Division<T>(a, b).quotient;
    }
  }
};
// Of integers.
struct Pow {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) {  // 1 / a^|b| truncated
        if (a == 1) return 1;
        if (a == -1) return b % 2 == 0 ? T{1} : T{-1};
        return 0;
      }
    }
    Wide<T> power = 1, factor = wide(a);
    for (Wide<T> rest = wide(b); rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) power *= factor;
      factor *= factor;
    }
    return static_cast<T>(power);
  }
};
struct Round {
  template <class T>
  static T call(T a) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::nearbyint(a);
    } else {
      return a;
    }
  }
};
struct Same {
  template <class T>
  static T call(T a) {
    return a;
  }
};
struct Zero {
  template <class T>
  static T call(T) {
    return T{};
  }
};
struct MakeComplex {
  template <class T>
  static std::complex<T> call(T re, T im) {
    return {re, im};
  }
};

// Bools are bytes here: any byte but 0 is true, and results are 0 or 1.
struct Or {
  static std::uint8_t call(std::uint8_t a, std::uint8_t b) { return (a | b) != 0; }
};
struct And {
  static std::uint8_t call(std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>((a != 0) & (b != 0));
  }
};
struct OrAnd {
  static std::uint8_t call(std::uint8_t a, std::uint8_t b, std::uint8_t c) {
    return Or::call(And::call(a, b), c);
  }
};
struct ClipTruth {
  static std::uint8_t call(std::uint8_t x, std::uint8_t low, std::uint8_t high) {
    return And::call(Or::call(x, low), high);
  }
};
struct Truth {
  static std::uint8_t call(std::uint8_t a) { return a != 0; }
};

ScalarKernel bool_kernel(ScalarOp op) {
  using B = std::uint8_t;
  switch (op) {
    case ScalarOp::add:
    case ScalarOp::maximum:
      return binary_loop<B, B, Or>;
    case ScalarOp::mul:
    case ScalarOp::minimum:
      return binary_loop<B, B, And>;
    case ScalarOp::fma:
      return ternary_loop<B, B, OrAnd>;
    case ScalarOp::clip:
      return ternary_loop<B, B, ClipTruth>;
    case ScalarOp::abs:
    case ScalarOp::conj:
    case ScalarOp::real:
    case ScalarOp::round:
      return unary_loop<B, B, Truth>;
    case ScalarOp::imag:
      return unary_loop<B, B, Zero>;
    default:
      return nullptr;
  }
}

// Loops shared by signed and unsigned integers: wrapping arithmetic ignores the sign.
template <class T>
ScalarKernel ring_kernel(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
      return binary_loop<T, T, Add>;
    case ScalarOp::sub:
      return binary_loop<T, T, Sub>;
    case ScalarOp::mul:
      return binary_loop<T, T, Mul>;
    case ScalarOp::fma:
      return ternary_loop<T, T, Fma>;
    case ScalarOp::neg:
      return unary_loop<T, T, Neg>;
    case ScalarOp::square:
    case ScalarOp::abs2:
      return unary_loop<T, T, Square>;
    case ScalarOp::conj:
    case ScalarOp::real:
      return unary_loop<T, T, Same>;
    case ScalarOp::imag:
      return unary_loop<T, T, Zero>;
    default:
      return nullptr;
  }
}

template <class T>
ScalarKernel ordered_kernel(ScalarOp op) {
  switch (op) {
    case ScalarOp::abs:
      return unary_loop<T, T, Abs>;
    case ScalarOp::sign:
      return unary_loop<T, T, Sign>;
    case ScalarOp::minimum:
      return binary_loop<T, T, Minimum>;
    case ScalarOp::maximum:
      return binary_loop<T, T, Maximum>;
    case ScalarOp::clip:
      return ternary_loop<T, T, Clip>;
    case ScalarOp::floor_div:
      return binary_loop<T, T, FloorDiv>;
    case ScalarOp::mod:
      return binary_loop<T, T, Mod>;
    case ScalarOp::pow:
      if constexpr (std::is_integral_v<T>) return binary_loop<T, T, Pow>;
      return nullptr;
    case ScalarOp::round:
      return unary_loop<T, T, Round>;
    default:
      return nullptr;
  }
}

}  // namespace

ScalarKernel real_arithmetic_loop(ScalarOp op, DType working) {
  if (is_bool(working)) return bool_kernel(op);
  return visit_dtype(working, [op](auto tag) -> ScalarKernel {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool> || !std::is_arithmetic_v<T>) {
      return nullptr;
    } else {
      if constexpr (std::is_floating_point_v<T>) {
        if (op == ScalarOp::make_complex) return binary_loop<T, std::complex<T>, MakeComplex>;
        if (ScalarKernel kernel = ring_kernel<T>(op)) return kernel;
      } else {
        if (ScalarKernel kernel = ring_kernel<std::make_unsigned_t<T>>(op)) return kernel;
      }
      return ordered_kernel<T>(op);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(real_arithmetic_loop);

ScalarKernel real_arithmetic_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(real_arithmetic_loop)(op, working);
}

}  // namespace palimpsest
#endif
