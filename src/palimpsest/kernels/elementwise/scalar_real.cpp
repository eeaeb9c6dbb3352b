// SPDX-License-Identifier: Apache-2.0
// Functions of real floating-point numbers, except those of vector_functions.hpp.
#include <cmath>
#include <numbers>
// This file is compiled once per instruction set; the best one is chosen when the program runs.

#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/elementwise/scalar_real.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/elementwise/scalar_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
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
PALIMPSEST_REAL_FUNCTION(Angle, x != x ? x : (std::signbit(x) ? std::numbers::pi_v<T> : T{0}))
#undef PALIMPSEST_REAL_FUNCTION

struct Div {
  template <class T>
  static T call(T a, T b) {
    return a / b;
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
    PALIMPSEST_CASE(angle, Angle)
#undef PALIMPSEST_CASE
    case ScalarOp::div:
      return binary_loop<T, T, Div>;
    default:
      return nullptr;
  }
}

}  // namespace

ScalarKernel real_function_loop(ScalarOp op, DType working) {
  if (working == DType::float32) return kernel_of<float>(op);
  if (working == DType::float64) return kernel_of<double>(op);
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(real_function_loop);

ScalarKernel real_function_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(real_function_loop)(op, working);
}

}  // namespace palimpsest
#endif
