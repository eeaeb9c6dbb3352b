// SPDX-License-Identifier: Apache-2.0
// The ops that files may hold.
#include "palimpsest/ops/registry.hpp"

#include <mutex>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/control/debugging_op.hpp"
#include "palimpsest/ops/control/device_op.hpp"
#include "palimpsest/ops/control/stop_gradient_op.hpp"
#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/create/random_op.hpp"
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/ops/elementwise/joined_passes.hpp"
#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/loop/run_time_extent_op.hpp"
#include "palimpsest/ops/products/block_matrices_op.hpp"
#include "palimpsest/ops/products/contract_op.hpp"
#include "palimpsest/ops/products/sparse_op.hpp"
#include "palimpsest/ops/products/svd_op.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"
#include "palimpsest/ops/shape/blocks_op.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"
#include "palimpsest/ops/shape/strided_op.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"
#include "palimpsest/ops/transforms/gridding_op.hpp"
#include "palimpsest/ops/transforms/real_fft_op.hpp"
#include "palimpsest/ops/transforms/stencil_op.hpp"

namespace palimpsest::ops {
namespace {

template <class... Types>
void register_all() {
  (register_type<Types>(), ...);
}

}  // namespace

void register_library_ops() {
  const ForkSection whole;
  static constinit std::once_flag once;
  std::call_once(once, [] {
    register_all<AddContract, Alloc, Arange, ArgReduce, AssertThat, AxisCount, Blocks, Breakpoint,
                 BroadcastLike, BroadcastTo, ComplexPart, Contiguous, Contract, Diagonal,
                 DiagonalInto, Elementwise, ElementwiseSums, ExpandDims, Eye, Fft, Flip,
                 FusedReduce, Gather, IfElse, Interpolation, Join, JoinedPasses, NextKey, Nonzero,
                 Norm2, NuclearNorms, Pad, PadAround, PartOf, PointOrder, Random, RandomIntegers,
                 RealFft, Reduce, Reshape, ReshapeTo, Roll, RunTimeExtent, Scan, ScatterAdd,
                 ShapeOf, Sleep, SoftenSingularValues, SparseProduct, SpecifyShape, SplitKey,
                 Squeeze, StencilOp, StopGradient, Strided, StridedAdjoint, Subtensor, Svd,
                 ToDevice, Transpose, UpdateAt, UpdateSubtensor, ViewAsComplex, ViewAsReal>();
  });
}

}  // namespace palimpsest::ops
