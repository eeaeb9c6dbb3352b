// SPDX-License-Identifier: Apache-2.0
#include "samples/op_samples.hpp"

namespace palimpsest::ops {

OpSample unary(std::string name, Tensor input, std::function<Variable(const Variable&)> build) {
  return {std::move(name), {std::move(input)}, [build = std::move(build)](Vars v) {
            return build(v[0]);
          }};
}

Tensor sample_values(Extents shape, DType dtype, std::uint64_t seed) {
  const index_t n = element_count(shape);
  if (is_inexact(dtype)) {
    const DType wide = is_complex(dtype) ? DType::complex128 : DType::float64;
    Tensor result = Tensor::random_uniform(shape, wide, {seed, 0});
    auto* numbers = static_cast<double*>(result.raw_mutable_data());
    for (index_t i = 0; i < (is_complex(dtype) ? 2 * n : n); ++i) {
      numbers[i] = 0.2 + 0.7 * numbers[i];
    }
    return result.to(dtype);
  }
  std::vector<index_t> numbers;
  for (index_t i = 0; i < n; ++i) {
    const index_t k = i + static_cast<index_t>(seed);
    numbers.push_back(is_bool(dtype) ? (k % 3 == 0 ? 1 : 0) : k % 7 - (is_unsigned(dtype) ? 0 : 2));
  }
  return Tensor::from(numbers, shape).to(dtype);
}

std::span<const OpEntry> op_samples() {
  static constexpr OpEntry kEntries[] = {
      {"AddContract", add_contract_samples},
      {"Alloc", alloc_samples},
      {"Arange", arange_samples},
      {"ArgReduce", arg_reduce_samples},
      {"ArrayToBlocks", array_to_blocks_samples},
      {"AssertThat", assert_that_samples},
      {"AxisCount", axis_count_samples},
      {"BlocksToArray", blocks_to_array_samples},
      {"Breakpoint", breakpoint_samples},
      {"BroadcastLike", broadcast_like_samples},
      {"BroadcastTo", broadcast_to_samples},
      {"Cast", cast_samples},
      {"ComplexPart", complex_part_samples},
      {"Contiguous", contiguous_samples},
      {"Contract", contract_samples},
      {"Diagonal", diagonal_samples},
      {"DiagonalInto", diagonal_into_samples},
      {"Elementwise", elementwise_samples},
      {"ElementwiseSums", elementwise_sums_samples},
      {"ExpandDims", expand_dims_samples},
      {"Eye", eye_samples},
      {"Fft", fft_samples},
      {"Flip", flip_samples},
      {"FusedReduce", fused_reduce_samples},
      {"Gather", gather_samples},
      {"IfElse", if_else_samples},
      {"Interpolate", interpolate_samples},
      {"InterpolateAdjoint", interpolate_adjoint_samples},
      {"Join", join_samples},
      {"JoinedPasses", joined_passes_samples},
      {"NextKey", next_key_samples},
      {"Nonzero", nonzero_samples},
      {"Norm2", norm2_samples},
      {"NuclearNorms", nuclear_norms_samples},
      {"Pad", pad_samples},
      {"PadAround", pad_around_samples},
      {"PartOf", part_of_samples},
      {"PointOrder", point_order_samples},
      {"Random", random_samples},
      {"RandomIntegers", random_integers_samples},
      {"RealFft", real_fft_samples},
      {"RealFftBack", real_fft_back_samples},
      {"Reduce", reduce_samples},
      {"Reshape", reshape_samples},
      {"ReshapeTo", reshape_to_samples},
      {"Roll", roll_samples},
      {"RunTimeExtent", run_time_extent_samples},
      {"Scan", scan_samples},
      {"ScatterAdd", scatter_add_samples},
      {"Shape", shape_samples},
      {"SplitKey", split_key_samples},
      {"Sleep", sleep_samples},
      {"SparseAdjoint", sparse_adjoint_samples},
      {"SparseProduct", sparse_product_samples},
      {"SpecifyShape", specify_shape_samples},
      {"Squeeze", squeeze_samples},
      {"SoftenSingularValues", soften_singular_values_samples},
      {"Stencil", stencil_samples},
      {"StencilAdjoint", stencil_adjoint_samples},
      {"StopGradient", stop_gradient_samples},
      {"Strided", strided_samples},
      {"StridedAdjoint", strided_adjoint_samples},
      {"Subtensor", subtensor_samples},
      {"Svd", svd_samples},
      {"ToDevice", to_device_samples},
      {"Transpose", transpose_samples},
      {"UpdateAt", update_at_samples},
      {"UpdateSubtensor", update_subtensor_samples},
      {"ViewAsComplex", view_as_complex_samples},
      {"ViewAsReal", view_as_real_samples},
  };
  return kEntries;
}

}  // namespace palimpsest::ops
