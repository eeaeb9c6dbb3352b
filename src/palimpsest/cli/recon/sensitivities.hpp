// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/io/scratch_array.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::cli {

/// A rectangle of the k-space grid.
struct CenterRegion {
  index_t y = 0, x = 0, height = 0, width = 0;
};

/// A rectangle around DC, (floor(ny/2), floor(nx/2)), in which every point is measured: the one
/// whose shorter side is longest, found by adding rows above and below. Empty when DC is not
/// measured.
///
/// Shapes   mask (ny, nx) bool
CenterRegion dense_center(const Tensor& mask);

struct SensitivityOptions {
  /// Extents of the windows whose linear dependence tells the coils apart.
  index_t kernel = 6;
  /// More of the centre than this along an axis is left unused.
  index_t largest_center = 24;
  /// Singular values of the windows' matrix below this part of the largest count as noise.
  double rank_threshold = 0.02;
  /// Where less than this part of the signal agrees with the windows there is no object: 0 there.
  double crop = 0.9;

  /// The smallest extent of a centre along either axis, 11 for windows of 6: with fewer, the
  /// windows do not span the signal, and a part of the object is taken for outside. Measured on
  /// 64^2 and 128^2 with 2 to 16 coils: 11 x 11 loses nothing of the object, 10 x 14 loses 3 %, 9 x
  /// 14 34 %, 8 x 24 20 %, 8 x 8 all of it.
  index_t smallest_center() const { return 2 * kernel - 1; }
};

/// Coil sensitivities from the densely sampled centre of k-space (ESPIRiT, one set of maps).
///
/// Math     s(r) is the eigenvector to the largest eigenvalue (at most 1) of the projection onto
/// the
///          row space of the calibration matrix, taken to the image domain; |s(r)| = 1, or 0
///          outside the object; its phase is that of the strongest virtual coil
/// Shapes   kspace (n_coils, ny, nx) complex64, centred -> maps (n_coils, ny, nx) complex64
/// Errors   UsageError: the centre is smaller than smallest_center() along an axis, or empty of
///          signal
/// Cost     O((n_coils kernel^2)^3 + ny nx n_coils^2 kernel)
/// Source   Uecker et al. 2014, doi:10.1002/mrm.24751
Tensor estimate_sensitivities(const Tensor& kspace, const CenterRegion& center,
                              const SensitivityOptions& options = {});

/// The same row by row into an array of the shape of kspace.
void estimate_sensitivities(const Tensor& kspace, const CenterRegion& center, ScratchArray& maps,
                            const SensitivityOptions& options = {});

/// UsageError: estimate_sensitivities() cannot work with this centre.
void check_center(const CenterRegion& center, const SensitivityOptions& options = {});

/// Held by estimate_sensitivities() beside k-space and result, at most.
///
/// Shapes   kspace (n_coils, ny, nx)
index_t sensitivity_bytes(const Extents& kspace, const CenterRegion& center,
                          const SensitivityOptions& options = {});

}  // namespace palimpsest::cli
