// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Where k-space was measured: on a grid, or along a trajectory.
struct KspaceSampling {
  /// bool or real, the grid (y, x) or (z, y, x), or (T, ..) of a series; absent: everywhere.
  std::optional<Tensor> mask = {};
  /// float32 (readouts, samples, D), x first, in cycles per field of view.
  std::optional<Tensor> trajectory = {};
  /// The normal operator of a trajectory is a convolution (Toeplitz), which grids nothing.
  bool toeplitz = true;
};

/// What the coils measure of an image: A x = P F sum over sets of s x.
///
/// Math     F centred and unitary; on a grid P multiplies by the mask, along a trajectory F is the
///          Nufft of accuracy 1e-4
/// Shapes   maps (C, y, x), (C, z, y, x) or with sets (M, C, ..), of which one set counts as none;
///          image ([T], [M], Ny, Nx) -> ([T], C, Ky, Kx) or (C, Sp, Ro), with Nz and Kz of volumes
/// DTypes   complex64
/// Errors   ShapeError: mask or trajectory do not fit the maps; DTypeError; ValueError: both
/// Cost     a Fourier transform for each coil, and one pass over the maps
NamedLinop sense_model(const Tensor& maps, const KspaceSampling& sampling = {});

/// Dimensions of the image of that model.
Dims image_dimensions(const Tensor& maps, const KspaceSampling& sampling = {});

}  // namespace palimpsest
