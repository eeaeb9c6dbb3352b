// SPDX-License-Identifier: Apache-2.0
// Logarithms and powers of vectors. This file is compiled once per instruction set; the best one
// is chosen when the program runs.
#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/functions/vector_functions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/functions/logarithms.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/functions/vector_loops-inl.hpp"
#include "palimpsest/kernels/functions/vector_powers-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

PALIMPSEST_VECTOR_FUNCTION(Log, log_of);
PALIMPSEST_VECTOR_FUNCTION(Log1p, log1p_of);
PALIMPSEST_VECTOR_FUNCTION(Log2, log2_of);
PALIMPSEST_VECTOR_FUNCTION(Log10, log10_of);
PALIMPSEST_VECTOR_FUNCTION(Arcsinh, arcsinh_of);
PALIMPSEST_VECTOR_FUNCTION(Arccosh, arccosh_of);
PALIMPSEST_VECTOR_FUNCTION(Arctanh, arctanh_of);
struct Pow {
  template <class F, class V>
  static HWY_INLINE V call(V x, V y) {
    return pow_of<F>(x, y);
  }
};

}  // namespace

ScalarKernel logarithms(ScalarOp op, DType working) {
  switch (op) {
    PALIMPSEST_KERNEL(log, Single, Log);
    PALIMPSEST_KERNEL(log1p, Single, Log1p);
    PALIMPSEST_KERNEL(log2, Single, Log2);
    PALIMPSEST_KERNEL(log10, Single, Log10);
    PALIMPSEST_KERNEL(arcsinh, Widened, Arcsinh);
    PALIMPSEST_KERNEL(arccosh, Widened, Arccosh);
    PALIMPSEST_KERNEL(arctanh, Widened, Arctanh);
    PALIMPSEST_KERNEL(pow, Single, Pow);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(logarithms);

ScalarKernel logarithm_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(logarithms)(op, working);
}

}  // namespace palimpsest
#endif
