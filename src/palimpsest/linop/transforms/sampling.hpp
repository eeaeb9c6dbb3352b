// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct SamplingOptions {
  /// Names of the axes of the index arrays; default K, or K1, K2, ...
  std::optional<Dims> output = {};
  /// Names of the sampled axes; default anonymous wildcards.
  std::optional<Dims> input = {};
  Dims batch = "...";
};
/// Reads points of the last D axes.
///
/// Math     y[b, k] = x[b, idx[k]]; the adjoint adds up, duplicates in a fixed order. N is the
///          Diagonal of the multiplicities; normal(Diagonal over the output) that of the weights
///          that meet in a point
/// Shapes   the D index arrays (integers) broadcast against each other
/// Errors   ValueError "range": an index outside 0..size-1; "input_size": another number of arrays
/// Cost     one pass
NamedLinop Sampling(std::vector<Tensor> idx, Extents input_size, SamplingOptions options = {});
/// Sampling with the D indices of a point along the last axis of one array.
NamedLinop SamplingFromStacked(const Tensor& idx, Extents input_size, SamplingOptions options = {});
/// The true entries of a bool mask, in row-major order.
NamedLinop SamplingFromMask(const Tensor& mask, SamplingOptions options = {});

}  // namespace palimpsest
