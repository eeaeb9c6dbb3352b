// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/registry.hpp"

#include "palimpsest/ops/samples.hpp"

namespace palimpsest::ops {

std::span<const OpEntry> op_registry() {
  static constexpr OpEntry kEntries[] = {
      {"ArgReduce", arg_reduce_samples},
      {"AxisCount", axis_count_samples},
      {"BroadcastLike", broadcast_like_samples},
      {"BroadcastTo", broadcast_to_samples},
      {"Cast", cast_samples},
      {"ComplexPart", complex_part_samples},
      {"Contract", contract_samples},
      {"Elementwise", elementwise_samples},
      {"ExpandDims", expand_dims_samples},
      {"Fft", fft_samples},
      {"Flip", flip_samples},
      {"Full", full_samples},
      {"FullLike", full_like_samples},
      {"Gather", gather_samples},
      {"Interpolate", interpolate_samples},
      {"InterpolateAdjoint", interpolate_adjoint_samples},
      {"Join", join_samples},
      {"Norm2", norm2_samples},
      {"Pad", pad_samples},
      {"PointOrder", point_order_samples},
      {"Reduce", reduce_samples},
      {"Reshape", reshape_samples},
      {"Roll", roll_samples},
      {"Scan", scan_samples},
      {"ScatterAdd", scatter_add_samples},
      {"SpecifyShape", specify_shape_samples},
      {"Squeeze", squeeze_samples},
      {"StopGradient", stop_gradient_samples},
      {"Subtensor", subtensor_samples},
      {"Transpose", transpose_samples},
      {"UpdateSubtensor", update_subtensor_samples},
      {"ViewAsComplex", view_as_complex_samples},
      {"ViewAsReal", view_as_real_samples},
  };
  return kEntries;
}

}  // namespace palimpsest::ops
