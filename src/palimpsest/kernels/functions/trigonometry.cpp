// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions of vectors. This file is compiled once per instruction set; the best one
// is chosen when the program runs.
#include "palimpsest/copy/loop_targets.hpp"
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
struct Hypot {
  template <class F, class V>
  static HWY_INLINE V call(V a, V b) {
    return hypot_of<F>(a, b);
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

}  // namespace

ScalarKernel trigonometry(ScalarOp op, DType working) {
  switch (op) {
    PALIMPSEST_KERNEL(sin, Single, Sin);
    PALIMPSEST_KERNEL(cos, Single, Cos);
    PALIMPSEST_KERNEL(tan, Single, Tan);
    PALIMPSEST_KERNEL(arcsin, Single, Arcsin);
    PALIMPSEST_KERNEL(arccos, Single, Arccos);
    PALIMPSEST_KERNEL(arctan, Single, Arctan);
    PALIMPSEST_KERNEL(arctan2, Single, Arctan2);
    PALIMPSEST_KERNEL(hypot, Single, Hypot);
    PALIMPSEST_KERNEL(sinc, Widened, Sinc);
    default:
      return nullptr;
  }
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
