// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// An ellipse of constant value; lengths in half fields of view, so the field is [-1, 1]^2.
struct Ellipse {
  double value = 0;
  double semi_axis_x = 1, semi_axis_y = 1;
  double center_x = 0, center_y = 0;
  /// Counterclockwise, y up.
  double angle_degrees = 0;
};

/// The ten ellipses of the Shepp-Logan head with Toft's contrast, values in [0, 1].
///
/// Source   Shepp & Logan 1974, doi:10.1109/TNS.1974.6499235; Toft 1996, thesis, table B.3
std::span<const Ellipse> modified_shepp_logan();

/// The sum of ellipses, averaged over each pixel: along x exactly, along y in 16 lines per pixel.
///
/// Shapes   (ny, nx) float32; row 0 is the top (y = +1)
/// Errors   ValueError: an extent below 1
Tensor ellipse_image(std::span<const Ellipse> ellipses, index_t ny, index_t nx);

/// The exact transform of ellipses along a trajectory. On the grid it agrees with the unitary
/// centred transform of their image, except for detail that the pixels lose.
///
/// Math     sqrt(ny nx) / 4 times the integral of f(x, y) exp(-i pi (k_x x + k_y y)), y downwards,
///          with the middle of pixel (floor(ny/2), floor(nx/2)) as the origin
/// Shapes   trajectory (readouts, samples, 2), x first, in cycles per field of view
///          -> complex64 (readouts, samples); without one (ny, nx)
/// Errors   ValueError: an extent below 1; ShapeError: another trajectory
Tensor ellipse_kspace(std::span<const Ellipse> ellipses, const Tensor& trajectory, index_t ny,
                      index_t nx);
Tensor ellipse_kspace(std::span<const Ellipse> ellipses, index_t ny, index_t nx);

}  // namespace palimpsest
