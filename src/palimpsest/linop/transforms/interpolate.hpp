// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"

namespace PALIMPSEST_API palimpsest {

struct InterpolateLinopOptions {
  /// Width of the kernel, in grid units.
  PerAxis width = 4.0;
  InterpolationKernel kernel = KaiserBessel{};
  /// 1: the product of the kernels of the axes; 2: the kernel of the distance.
  int norm = 1;
  PadMode pad_mode = PadMode::circular;
  Dims batch = "...";
  /// Names of the axes of the points; default K, or K1, K2, ...
  std::optional<Dims> locs_batch = {};
  /// Names of the grid axes; default anonymous wildcards.
  std::optional<Dims> grid = {};
};
/// Reads a grid between its elements; the adjoint is gridding.
///
/// Math     y[b, k] = sum over g with |g_d - k_d| <= w_d / 2, both ends included, of K x[b, g]
/// Shapes   locs (k.., D), D = 1, 2, 3, in grid units; the last D axes become those of the points
/// Errors   ValueError "kernel", "norm", "width", "locs", "finite"; NotSupported "locs": a gradient
///          with respect to the locations
/// Cost     points w^D per batch entry; memory: the locations and 4 or 8 bytes a point
NamedLinop Interpolate(Parameter locs, Extents grid_size, InterpolateLinopOptions options = {});

}  // namespace palimpsest
