// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/calibration.hpp"
#include "palimpsest/io/scratch_array.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

struct EspiritOptions {
  /// Largest extent of the calibration area along an axis.
  index_t calibration = 24;
  /// The calibration area. Default: calibration_area_of().
  std::optional<CalibrationArea> area = {};
  /// Extent of the windows along each axis that has more than one point.
  index_t kernel = 6;
  /// Singular vectors with sigma > sqrt(threshold) sigma_1 are kept. `std::nullopt`: all of them,
  /// weighted by (1 - l / sigma)+ with the l that Stein's unbiased estimate of risk prefers.
  std::optional<double> threshold = 0.001;
  /// Instead of the threshold: this number of vectors, or those with sigma > percent / 100 sigma_1.
  std::optional<index_t> rank = {};
  std::optional<double> percent = {};
  /// Maps are 0 where the eigenvalue is smaller. `std::nullopt`: by Stein's unbiased estimate.
  std::optional<double> crop = 0.8;
  index_t sets = 1;
  /// Maps fade out around the crop value.
  bool soft = false;
  /// Maps keep the receive profile of the coils: divided by their 1-norm, times sqrt(C).
  bool intensity = false;
  /// Multiplies each vector such that its product with the strongest virtual coil is positive.
  bool rotate_phase = true;
  /// Variance of the noise of a complex sample, for automatic options; default: from the smallest
  /// singular values.
  std::optional<double> sigma2 = {};
  /// The result has eigenvalues.
  bool keep_eigenvalues = true;
};

struct MapsResult {
  /// complex64 (M, C, z, y, x), or (M, C, y, x). Undefined if they went into a ScratchArray.
  Tensor maps;
  /// float32 (M, z, y, x), not cropped. Undefined unless kept.
  Tensor eigenvalues;
  CalibrationArea area;
  /// Singular vectors that were kept, and all of them.
  index_t vectors = 0, of_vectors = 0;
  /// The crop value that was used.
  double crop = 0;
};

/// Coil sensitivities as eigenvectors, from the calibration area of k-space.
///
/// Math     P projects onto the span of all windows of kernel^d points and all coils.
///          G_ab(r) = kernel^-d sum over u, v of P[(a, u), (b, v)] exp(2 pi i (u - v) r / N);
///          set j is the eigenvector of G(r), |s| = 1, to the j-th largest eigenvalue, and 0 where
///          that is below crop
/// Shapes   kspace (C, y, x) or (C, z, y, x), centred -> maps (M, C, ..)
/// DTypes   complex64
/// Errors   ShapeError, DTypeError: not such an array; ValueError: an area "too small" (below
///          kernel + 2), without signal, or with NaN; options out of range
/// Cost     O(min(windows, C kernel^d)^3 + voxels C^2 (kernel + steps)); memory of plan_espirit().
///          Eigenvectors are exact to 1e-5: power steps, and LAPACK where |G s - e s| > 1e-6
/// Source   Uecker et al. 2014, doi:10.1002/mrm.24751; Iyer et al. 2020, doi:10.1002/mrm.28386
MapsResult espirit(const Tensor& kspace, const EspiritOptions& options = {});
/// Writes the maps into an array of (M, C, ..), some lines at a time. With an automatic crop value
/// they are in memory first.
MapsResult espirit(const Tensor& kspace, ScratchArray& maps, const EspiritOptions& options = {});

struct EspiritPlan {
  /// The most that espirit() holds beside k-space, maps and eigenvalues, and the sizes of these.
  index_t work_bytes = 0, maps_bytes = 0, eigenvalue_bytes = 0;

  index_t peak_bytes() const { return work_bytes + maps_bytes + eigenvalue_bytes; }
};
/// Memory of espirit() for k-space of a shape, exact. Without `area` in the options the plan
/// assumes the largest calibration area and counts the search for it.
///
/// Errors   those of espirit() that need no data
EspiritPlan plan_espirit(const Extents& kspace, const EspiritOptions& options = {},
                         bool into_array = false);

struct WalshOptions {
  /// Extent along each axis of the block over which covariances are averaged, odd.
  index_t block = 7;
  index_t sets = 1;
};
/// Coil sensitivities as dominant eigenvectors of the covariance of coil images around each point.
///
/// Math     R(r) = sum over a block around r of y y^H; set j is the eigenvector to the j-th largest
///          eigenvalue, |s| = 1, its phase that of the strongest virtual coil; 0 where R is 0
/// Shapes   coil_images (C, y, x) or (C, z, y, x) -> (M, C, ..)
/// DTypes   complex64
/// Errors   ShapeError, DTypeError: not such an array; ValueError "block", "sets": out of range;
///          "NaN"
/// Cost     O(voxels C^2 (block d + C)); memory: C (C + 1) / 2 complex128 numbers for each point
/// Source   Walsh et al. 2000, doi:10.1002/(SICI)1522-2594(200005)43:5<682::AID-MRM10>3.0.CO;2-G
Tensor walsh(const Tensor& coil_images, const WalshOptions& options = {});

struct DirectOptions {
  /// Largest extent, along an axis, of the calibration area that is found; and the area, if given.
  index_t calibration = 24;
  std::optional<CalibrationArea> area = {};
};
/// Coil sensitivities as low-resolution coil images over their root sum of squares.
///
/// Math     y_c: inverse transform of the calibration area under a Kaiser window (beta 4);
///          s_c = y_c / sqrt(sum |y|^2), 0 where all are 0
/// Shapes   kspace (C, y, x) or (C, z, y, x) -> (1, C, ..)
/// DTypes   complex64
/// Errors   ShapeError, DTypeError: not such an array; ValueError: no calibration area
/// Source   McKenzie et al. 2002, doi:10.1002/mrm.10087
Tensor direct_maps(const Tensor& kspace, const DirectOptions& options = {});

/// Peak bytes of walsh(), with its result and without the coil images.
index_t plan_walsh(const Extents& coil_images, const WalshOptions& options = {});
/// Peak bytes of direct_maps(), with its result and without k-space.
index_t plan_direct_maps(const Extents& kspace, const CalibrationArea& area);

/// The image that maps of walsh() or of others make of coil images: s^H y of each set.
///
/// Shapes   coil_images (C, ..), maps (M, C, ..) -> (M, ..)
/// Errors   ShapeError, DTypeError: they do not fit
Tensor adaptive_combine(const Tensor& coil_images, const Tensor& maps);

/// Maps that are 0 where `support` is false.
///
/// Shapes   maps (M, C, ..) complex64, support (..) bool
Tensor apply_mask(const Tensor& maps, const Tensor& support);

}  // namespace palimpsest
