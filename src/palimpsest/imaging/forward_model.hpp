// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Sampling of k-space: points of a grid, or a trajectory.
struct KspaceSampling {
  /// bool or real, the grid (y, x) or (z, y, x), or (T, ..) of a series; absent: everywhere.
  std::optional<Tensor> mask = {};
  /// float32 (readouts, samples, D), x first, in cycles per field of view; (T, ..) of a series.
  std::optional<Tensor> trajectory = {};
  /// The normal operator of a trajectory is a convolution (Toeplitz), which grids nothing.
  bool toeplitz = true;
  /// Numbers (T, B): frame t of a series is the sum of basis[t, b] times image b.
  std::optional<Tensor> basis = {};
};

/// Operator from an image to the signals of the coils: A x = P F sum over sets of s x.
///
/// Math     F centred and unitary; on a grid P multiplies by the mask, along a trajectory F is the
///          Nufft of accuracy 1e-4. With a basis x holds its coefficient images, and their weighted
///          sums are the frames
/// Shapes   maps (C, y, x), (C, z, y, x) or with sets (M, C, ..); a single set has no axis M;
///          image ([T], [M], Ny, Nx) -> ([T], C, Ky, Kx) or ([T], C, Sp, Ro), with Nz and Kz of
///          volumes; with a basis B takes the place of T in the image
/// DTypes   complex64
/// Errors   ShapeError: mask or trajectory do not fit the maps; DTypeError; ValueError: both;
///          "basis": without frames, other rows than frames, more columns than rows, NaN, a column
///          of zeros
/// Cost     a Fourier transform for each coil, frame and set, of a basis on a grid for each column
///          in place of frames, and one pass over the maps
/// Source   of a basis: Tamir et al. 2017, doi:10.1002/mrm.26102
NamedLinop sense_model(const Tensor& maps, const KspaceSampling& sampling = {});

/// Dimensions of the image of that model.
Dims image_dimensions(const Tensor& maps, const KspaceSampling& sampling = {});

}  // namespace palimpsest
