// SPDX-License-Identifier: Apache-2.0
// Exponential functions of vectors. This file is compiled once per instruction set; the best one
// is chosen when the program runs.
#include "palimpsest/copy/loop_targets.hpp"
#include "palimpsest/kernels/functions/vector_functions.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/functions/exponentials.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/functions/vector_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

PALIMPSEST_VECTOR_FUNCTION(Exp, exp_of);
PALIMPSEST_VECTOR_FUNCTION(Expm1, expm1_of);
PALIMPSEST_VECTOR_FUNCTION(Sigmoid, sigmoid_of);
PALIMPSEST_VECTOR_FUNCTION(Tanh, tanh_of);
PALIMPSEST_VECTOR_FUNCTION(Sinh, sinh_of);
PALIMPSEST_VECTOR_FUNCTION(Cosh, cosh_of);
PALIMPSEST_VECTOR_FUNCTION(Erf, erf_of);

}  // namespace

ScalarKernel exponentials(ScalarOp op, DType working) {
  switch (op) {
    PALIMPSEST_KERNEL(exp, Single, Exp);
    PALIMPSEST_KERNEL(expm1, Single, Expm1);
    PALIMPSEST_KERNEL(sigmoid, Single, Sigmoid);
    PALIMPSEST_KERNEL(tanh, Single, Tanh);
    PALIMPSEST_KERNEL(sinh, Single, Sinh);
    PALIMPSEST_KERNEL(cosh, Single, Cosh);
    PALIMPSEST_KERNEL(erf, Single, Erf);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(exponentials);

ScalarKernel exponential_kernel(ScalarOp op, DType working) {
  return HWY_DYNAMIC_DISPATCH(exponentials)(op, working);
}

}  // namespace palimpsest
#endif
