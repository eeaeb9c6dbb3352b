// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions of vectors. This file is compiled once per instruction set; the best one
// is chosen when the program runs.
#include "palimpsest/kernels/elementwise/loop_targets.hpp"
#include "palimpsest/kernels/functions/vector_functions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/functions/trigonometry.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/functions/vector_loops-inl.hpp"
#include "palimpsest/kernels/functions/vector_trig-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

PALIMPSEST_VECTOR_FUNCTION(Sin, sin_of);
PALIMPSEST_VECTOR_FUNCTION(Cos, cos_of);
PALIMPSEST_VECTOR_FUNCTION(Tan, tan_of);
PALIMPSEST_VECTOR_FUNCTION(Arcsin, arcsin_of);
PALIMPSEST_VECTOR_FUNCTION(Arccos, arccos_of);
PALIMPSEST_VECTOR_FUNCTION(Arctan, arctan_of);
struct Arctan2 {
  template <class F, class V>
  static HWY_INLINE V call(V y, V x) {
    return arctan2_of<F>(y, x);
  }
};
// sin(pi x) / (pi x)
struct Sinc {
  template <class F, class V>
  static HWY_INLINE V call(V x) {
    const V angle = hn::Mul(x, of<V>(2 * kHalfPi)), one = of<V>(1);
    return hn::IfThenElse(hn::Eq(angle, of<V>(0)), one, hn::Div(sin_of<F>(angle), angle));
  }
};

ScalarKernel of_singles(ScalarOp op) {
  switch (op) {
    case ScalarOp::sin:
      return function_loop<Widened, Sin>;
    case ScalarOp::cos:
      return function_loop<Widened, Cos>;
    case ScalarOp::tan:
      return function_loop<Widened, Tan>;
    case ScalarOp::arcsin:
      return function_loop<Widened, Arcsin>;
    case ScalarOp::arccos:
      return function_loop<Widened, Arccos>;
    case ScalarOp::arctan:
      return function_loop<Widened, Arctan>;
    case ScalarOp::arctan2:
      return function_loop<Widened, Arctan2>;
    case ScalarOp::sinc:
      return function_loop<Widened, Sinc>;
    default:
      return nullptr;
  }
}
ScalarKernel of_doubles(ScalarOp op) {
  switch (op) {
    case ScalarOp::sin:
      return function_loop<Double, Sin>;
    case ScalarOp::cos:
      return function_loop<Double, Cos>;
    case ScalarOp::tan:
      return function_loop<Double, Tan>;
    case ScalarOp::arcsin:
      return function_loop<Double, Arcsin>;
    case ScalarOp::arccos:
      return function_loop<Double, Arccos>;
    case ScalarOp::arctan:
      return function_loop<Double, Arctan>;
    case ScalarOp::arctan2:
      return function_loop<Double, Arctan2>;
    case ScalarOp::sinc:
      return function_loop<Double, Sinc>;
    default:
      return nullptr;
  }
}

}  // namespace

ScalarKernel trigonometry(ScalarOp op, DType working) {
  if (working == DType::float32) return of_singles(op);
  if (working == DType::float64) return of_doubles(op);
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(trigonometry);

ScalarKernel trigonometric_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(trigonometry)(op, working);
}

}  // namespace palimpsest
#endif
