// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/graph/variable.hpp"

// Applications of every op on small inputs, for the laws that all ops obey.
namespace palimpsest::ops {

/// One application of an op.
struct OpSample {
  std::string name;
  std::vector<Tensor> inputs;
  /// Returns an output of the op that the sample is about, applied to these inputs.
  std::function<Variable(std::span<const Variable>)> build;
};

/// The name of an op or of a family of ops, and its samples.
struct OpEntry {
  std::string_view name;
  std::vector<OpSample> (*samples)();
};

/// Every op of the library, each once. An op that is missing here is held to no law.
std::span<const OpEntry> op_samples();

/// Numbers between 0.2 and 0.9 (both parts, if complex), where every scalar function is smooth; for
/// integers 1, 2, 3 and so on modulo 7, less 2; for bools every third is true.
Tensor sample_values(Extents shape, DType dtype, std::uint64_t seed = 1);

using Vars = std::span<const Variable>;

/// The sample of an op of one input.
OpSample unary(std::string name, Tensor input, std::function<Variable(const Variable&)> build);

std::vector<OpSample> elementwise_samples();
std::vector<OpSample> cast_samples();
std::vector<OpSample> complex_part_samples();
std::vector<OpSample> view_as_real_samples();
std::vector<OpSample> view_as_complex_samples();
std::vector<OpSample> reduce_samples();
std::vector<OpSample> elementwise_sums_samples();
std::vector<OpSample> fused_reduce_samples();
std::vector<OpSample> arg_reduce_samples();
std::vector<OpSample> scan_samples();
std::vector<OpSample> contract_samples();
std::vector<OpSample> add_contract_samples();
std::vector<OpSample> diagonal_samples();
std::vector<OpSample> diagonal_into_samples();
std::vector<OpSample> nonzero_samples();
std::vector<OpSample> norm2_samples();
std::vector<OpSample> fft_samples();
std::vector<OpSample> real_fft_samples();
std::vector<OpSample> real_fft_back_samples();
std::vector<OpSample> reshape_samples();
std::vector<OpSample> contiguous_samples();
std::vector<OpSample> reshape_to_samples();
std::vector<OpSample> transpose_samples();
std::vector<OpSample> expand_dims_samples();
std::vector<OpSample> squeeze_samples();
std::vector<OpSample> broadcast_to_samples();
std::vector<OpSample> broadcast_like_samples();
std::vector<OpSample> specify_shape_samples();
std::vector<OpSample> stop_gradient_samples();
std::vector<OpSample> to_device_samples();
std::vector<OpSample> flip_samples();
std::vector<OpSample> pad_samples();
std::vector<OpSample> pad_around_samples();
std::vector<OpSample> part_of_samples();
std::vector<OpSample> roll_samples();
std::vector<OpSample> join_samples();
std::vector<OpSample> joined_passes_samples();
std::vector<OpSample> subtensor_samples();
std::vector<OpSample> update_subtensor_samples();
std::vector<OpSample> gather_samples();
std::vector<OpSample> scatter_add_samples();
std::vector<OpSample> sparse_product_samples();
std::vector<OpSample> sparse_adjoint_samples();
std::vector<OpSample> update_at_samples();
std::vector<OpSample> alloc_samples();
std::vector<OpSample> arange_samples();
std::vector<OpSample> eye_samples();
std::vector<OpSample> if_else_samples();
std::vector<OpSample> assert_that_samples();
std::vector<OpSample> breakpoint_samples();
std::vector<OpSample> sleep_samples();
std::vector<OpSample> random_samples();
std::vector<OpSample> random_integers_samples();
std::vector<OpSample> split_key_samples();
std::vector<OpSample> next_key_samples();
std::vector<OpSample> shape_samples();
std::vector<OpSample> axis_count_samples();
std::vector<OpSample> run_time_extent_samples();
std::vector<OpSample> interpolate_samples();
std::vector<OpSample> interpolate_adjoint_samples();
std::vector<OpSample> point_order_samples();
std::vector<OpSample> array_to_blocks_samples();
std::vector<OpSample> blocks_to_array_samples();
std::vector<OpSample> soften_singular_values_samples();
std::vector<OpSample> svd_samples();
std::vector<OpSample> nuclear_norms_samples();
std::vector<OpSample> stencil_samples();
std::vector<OpSample> stencil_adjoint_samples();
std::vector<OpSample> strided_samples();
std::vector<OpSample> strided_adjoint_samples();

}  // namespace palimpsest::ops
