// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <vector>

#include "palimpsest/ops/transforms/gridding_op.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"

namespace palimpsest {

/// Everything that follows from the size of the image and the options.
struct NufftGeometry {
  /// Errors   ValueError naming `who`
  NufftGeometry(const Extents& image_size, const NufftOptions& options, DType real,
                std::string_view who);

  std::size_t ndim() const { return image.size(); }
  /// Factors of the image along each axis, which undo the effect of the interpolation.
  Tensor apodization(std::size_t axis, DType real) const;
  /// The padded grid to points; its kernel has its largest value 1.
  GriddingPlan interpolation() const { return GriddingPlan(spec, "Nufft"); }
  /// The same when the image is multiplied by q / sinh(q), with the scale in the kernel.
  GriddingSpec spec_for_given_apodization() const;

  Extents image, padded;
  /// The given ratio, or the one that follows from eps; padded sizes may be larger.
  double oversamp = 1;
  GriddingSpec spec;
  /// Scale of the whole transform, per axis.
  std::array<double, 3> axis_scale{1, 1, 1};
};

/// Bound of the relative error, in the root mean square over white-noise images and points that are
/// spread over k-space, with D axes of the same width: 1.5 sqrt(D) (2 os - 1.1) exp(-pi w sqrt(1 -
/// 1/os)). Points that all lie at one place between two grid elements have at most twice as much.
double nufft_expected_error(int ndim, double width, double oversamp);
/// Bound for any image, along one axis, in the spectral norm: about twice the one above.
double nufft_error_bound(double width, double oversamp);

namespace ops {

/// The pipeline of a NUFFT around a given order of the points and, if defined, apodization (image
/// extents).
Variable nufft_graph(const NufftGeometry& geometry, const GriddingPlan& plan, const Variable& x,
                     const Variable& locs, const Variable& order, const Variable& apodization = {});
Variable nufft_adjoint_graph(const NufftGeometry& geometry, const GriddingPlan& plan,
                             const Variable& y, const Variable& locs, const Variable& order,
                             const Variable& apodization = {});
/// The ends of the pipeline: image to spectrum on the padded grid, and back.
Variable padded_spectrum(const NufftGeometry& geometry, const Variable& x,
                         std::span<const Variable> factors);
Variable padded_spectrum_adjoint(const NufftGeometry& geometry, const Variable& grid,
                                 std::span<const Variable> factors);

}  // namespace ops
}  // namespace palimpsest
