// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/ops/shape/blocks.hpp"
#include "palimpsest/ops/transforms/fft.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"
#include "palimpsest/tensor/tensor.hpp"

// The operators as functions. On Variables they build graphs. On Tensors they compile the graph
// once per signature and run it, as tensor math does. Axes are the last ones unless said otherwise.
namespace PALIMPSEST_API palimpsest {
namespace functional {

struct TransformOptions {
  /// Default: all.
  AxesArgument axes = {};
  FftNorm norm = FftNorm::ortho;
  bool centered = false;
};
Variable fft(const Variable& x, const TransformOptions& options = {});
Tensor fft(const Tensor& x, const TransformOptions& options = {});
Variable ifft(const Variable& x, const TransformOptions& options = {});
Tensor ifft(const Tensor& x, const TransformOptions& options = {});

/// An image at the frequencies `locs` (k.., D), and back.
using ops::nufft;
Tensor nufft(const Tensor& x, const Tensor& locs, const NufftOptions& options = {});
using ops::nufft_adjoint;
Tensor nufft_adjoint(const Tensor& y, const Tensor& locs, const Extents& grid_size,
                     const NufftOptions& options = {});

/// A grid between its elements, and gridding.
using ops::interpolate;
Tensor interpolate(const Tensor& x, const Tensor& locs, const InterpolateOptions& options = {});
using ops::interpolate_adjoint;
Tensor interpolate_adjoint(const Tensor& y, const Tensor& locs, const Extents& grid_size,
                           const InterpolateOptions& options = {});

/// Blocks that may overlap, and their sum.
using ops::array_to_blocks;
Tensor array_to_blocks(const Tensor& x, const Extents& block, const Extents& stride);
using ops::blocks_to_array;
Tensor blocks_to_array(const Tensor& y, const Extents& im_size, const Extents& block,
                       const Extents& stride);

/// Gathers points of the last idx.size() axes; index_adjoint adds them up in an array of this size.
Variable index(const Variable& x, const std::vector<Variable>& idx);
Tensor index(const Tensor& x, const std::vector<Tensor>& idx);
Variable index_adjoint(const Variable& y, const std::vector<Variable>& idx, const Extents& size);
Tensor index_adjoint(const Tensor& y, const std::vector<Tensor>& idx, const Extents& size);

/// Zeros around the last axes up to this size, centre on centre; the centre alone.
/// Errors   ValueError "size"
Variable center_pad(const Variable& x, const Extents& size);
Tensor center_pad(const Tensor& x, const Extents& size);
Variable center_crop(const Variable& x, const Extents& size);
Tensor center_crop(const Tensor& x, const Extents& size);
/// Zeros behind the end of the last axes.
Variable end_pad(const Variable& x, const Extents& size);
Tensor end_pad(const Tensor& x, const Extents& size);

/// Does as the operator of that name.
Variable convolve(const Variable& x, const Variable& kernel, Boundary boundary = Boundary::zeros);
Tensor convolve(const Tensor& x, const Tensor& kernel, Boundary boundary = Boundary::zeros);

/// The sum of conj(a) b.
Variable inner(const Variable& a, const Variable& b);
Tensor inner(const Tensor& a, const Tensor& b);

/// The positions of true entries, row-major, one array per axis.
std::vector<Tensor> mask_to_index(const Tensor& mask);
/// The elements that a slice takes from an axis of n.
std::vector<index_t> slice_to_range(const Slice& slice, index_t n);

}  // namespace functional
}  // namespace palimpsest
