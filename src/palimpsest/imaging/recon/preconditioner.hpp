// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <vector>

#include "palimpsest/linop/core/named_linop.hpp"

namespace palimpsest {

// Samples along a trajectory lie densest in the middle of k-space. Steps of 1 / L, L the largest
// eigenvalue of the normal operator, are right there and far too short at the edge: spokes of 64
// points have an L of 50 times the mean. A step for each frequency mends that.

/// A bound of F^H F that is diagonal in the basis of the centred Fourier transform of the image:
/// F^H F <= factor D^H q D, D that transform.
struct SpectralBound {
  /// float32, ([frame,] y, x) or with z: the density of samples, its largest within kDilation
  /// points.
  Tensor q;
  double factor = 1;
  /// The mean eigenvalue of F^H F: samples per point.
  double mean = 1;
};

/// Dimensions of k-space for those of an image: Kz of Nz, .., or with another letter.
Dims grid_of(const Dims& image, const char* letter = "K");

/// Points of k-space over which coil maps may spread the density.
inline constexpr index_t kDilation = 2;

/// The bound for transforms (C, image) -> (C, readouts, samples), one, or one for each frame.
SpectralBound spectral_bound(const std::vector<NamedLinop>& transforms, const Dims& image,
                             const Extents& extents, bool has_frames);

/// 0.99 / (scale factor q / 2 + rest), float32: steps for P of the solver condat_vu.
Tensor spectral_steps(const SpectralBound& bound, double scale, double rest);

/// Mean square of the frequencies of maps (.., C, spatial..), in cycles per field of view: of
/// differences between neighbours that are both not 0.
double mean_square_frequency(const Tensor& maps, std::size_t n_spatial);

/// The largest sum over coils of |s|^2 of a point: maps (coil, z, y, x), read line by line.
double largest_norm2(const Tensor& maps);

}  // namespace palimpsest
