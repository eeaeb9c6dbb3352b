// SPDX-License-Identifier: Apache-2.0
// Comparisons, classes of numbers, logic and bits. A bool is a byte: operands other than 0 are
// true, results are 0 or 1.
#include <cmath>
#include <complex>
// This file is compiled once per instruction set; the best one is chosen when the program runs.

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/elementwise/scalar_compare.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/elementwise/scalar_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

using Byte = std::uint8_t;

#define PALIMPSEST_COMPARISON(Name, op) \
  struct Name {                         \
    template <class T>                  \
    static Byte call(T a, T b) {        \
      return a op b;                    \
    }                                   \
  };
PALIMPSEST_COMPARISON(Eq, ==)
PALIMPSEST_COMPARISON(Ne, !=)
PALIMPSEST_COMPARISON(Lt, <)
PALIMPSEST_COMPARISON(Le, <=)
PALIMPSEST_COMPARISON(Gt, >)
PALIMPSEST_COMPARISON(Ge, >=)
#undef PALIMPSEST_COMPARISON

// Comparison of truth values: F compares bytes that are 0 or 1.
template <class F>
struct OfTruth {
  static Byte call(Byte a, Byte b) {
    return F::template call<Byte>(static_cast<Byte>(a != 0), static_cast<Byte>(b != 0));
  }
};

struct IsNan {
  template <class T>
  static Byte call(T a) {
    return a != a;
  }
};
struct IsInf {
  template <class T>
  static Byte call(T a) {
    return std::isinf(a);
  }
  template <class T>
  static Byte call(std::complex<T> a) {
    return std::isinf(a.real()) || std::isinf(a.imag());
  }
};
struct IsFinite {
  template <class T>
  static Byte call(T a) {
    return std::isfinite(a);
  }
  template <class T>
  static Byte call(std::complex<T> a) {
    return std::isfinite(a.real()) && std::isfinite(a.imag());
  }
};
struct Never {
  static Byte call(Byte) { return 0; }
};
struct Always {
  static Byte call(Byte) { return 1; }
};

struct And {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T call(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  static T call(T a) {
    return static_cast<T>(~a);
  }
};
struct NotTruth {
  static Byte call(Byte a) { return a == 0; }
};

template <class T>
ScalarKernel equality_kernel(ScalarOp op) {
  switch (op) {
    case ScalarOp::eq:
      return binary_loop<T, Byte, Eq>;
    case ScalarOp::ne:
      return binary_loop<T, Byte, Ne>;
    default:
      return nullptr;
  }
}

template <class T>
ScalarKernel order_kernel(ScalarOp op) {
  switch (op) {
    case ScalarOp::lt:
      return binary_loop<T, Byte, Lt>;
    case ScalarOp::le:
      return binary_loop<T, Byte, Le>;
    case ScalarOp::gt:
      return binary_loop<T, Byte, Gt>;
    case ScalarOp::ge:
      return binary_loop<T, Byte, Ge>;
    default:
      return nullptr;
  }
}

template <class T>
ScalarKernel class_kernel(ScalarOp op) {
  switch (op) {
    case ScalarOp::isnan:
      return unary_loop<T, Byte, IsNan>;
    case ScalarOp::isinf:
      return unary_loop<T, Byte, IsInf>;
    case ScalarOp::isfinite:
      return unary_loop<T, Byte, IsFinite>;
    default:
      return nullptr;
  }
}

// Integers are never NaN nor infinite. The loop reads one byte per element and ignores it, which
// works for every item size.
ScalarKernel class_kernel_of_integers(ScalarOp op) {
  switch (op) {
    case ScalarOp::isnan:
    case ScalarOp::isinf:
      return unary_loop<Byte, Byte, Never>;
    case ScalarOp::isfinite:
      return unary_loop<Byte, Byte, Always>;
    default:
      return nullptr;
  }
}

template <class T>
ScalarKernel bits_kernel(ScalarOp op) {
  switch (op) {
    case ScalarOp::bitwise_and:
      return binary_loop<T, T, And>;
    case ScalarOp::bitwise_or:
      return binary_loop<T, T, Or>;
    case ScalarOp::bitwise_xor:
      return binary_loop<T, T, Xor>;
    case ScalarOp::bitwise_not:
      return unary_loop<T, T, Not>;
    default:
      return nullptr;
  }
}

ScalarKernel truth_kernel(ScalarOp op) {
  switch (op) {
    case ScalarOp::logical_and:
    case ScalarOp::bitwise_and:
      return binary_loop<Byte, Byte, OfTruth<And>>;
    case ScalarOp::logical_or:
    case ScalarOp::bitwise_or:
      return binary_loop<Byte, Byte, OfTruth<Or>>;
    case ScalarOp::logical_xor:
    case ScalarOp::bitwise_xor:
    case ScalarOp::ne:
      return binary_loop<Byte, Byte, OfTruth<Xor>>;
    case ScalarOp::logical_not:
    case ScalarOp::bitwise_not:
      return unary_loop<Byte, Byte, NotTruth>;
    case ScalarOp::eq:
      return binary_loop<Byte, Byte, OfTruth<Eq>>;
    case ScalarOp::lt:
      return binary_loop<Byte, Byte, OfTruth<Lt>>;
    case ScalarOp::le:
      return binary_loop<Byte, Byte, OfTruth<Le>>;
    case ScalarOp::gt:
      return binary_loop<Byte, Byte, OfTruth<Gt>>;
    case ScalarOp::ge:
      return binary_loop<Byte, Byte, OfTruth<Ge>>;
    default:
      return class_kernel_of_integers(op);
  }
}

}  // namespace

ScalarKernel comparison_loop(ScalarOp op, DType working) {
  if (is_bool(working)) return truth_kernel(op);
  return visit_dtype(working, [op](auto tag) -> ScalarKernel {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return nullptr;
    } else if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      if (ScalarKernel kernel = equality_kernel<U>(op)) return kernel;
      if (ScalarKernel kernel = bits_kernel<U>(op)) return kernel;
      if (ScalarKernel kernel = order_kernel<T>(op)) return kernel;
      return class_kernel_of_integers(op);
    } else {
      if constexpr (std::is_floating_point_v<T>) {
        if (ScalarKernel kernel = order_kernel<T>(op)) return kernel;
      }
      if (ScalarKernel kernel = equality_kernel<T>(op)) return kernel;
      return class_kernel<T>(op);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(comparison_loop);

ScalarKernel comparison_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(comparison_loop)(op, working);
}

}  // namespace palimpsest
#endif
