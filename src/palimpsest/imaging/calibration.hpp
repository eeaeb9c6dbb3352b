// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// A block of the k-space grid in which every point is measured, along z, y, x. Axes that an array
/// lacks have start 0 and extent 1.
struct CalibrationArea {
  std::array<index_t, 3> start = {0, 0, 0}, extent = {1, 1, 1};

  bool operator==(const CalibrationArea&) const = default;
};

/// The block around the middle of the grid in which every point is measured.
///
/// It starts as the point floor((n - 1) / 2). Then x, y, z grow in turn by one, the block of c
/// points lying at floor((n - c) / 2), while every point in it is measured and c < largest. Extents
/// are 0 where the point in the middle is not measured.
///
/// Shapes   measured (y, x) or (z, y, x), bool
/// Errors   ShapeError: another number of axes, an empty one; DTypeError: not bool
/// Cost     the points of the block
CalibrationArea calibration_area(const Tensor& measured, index_t largest = 24);

/// The calibration area of k-space, as calibration_area(): a point counts as measured if it is not
/// 0 in some coil. Along the readout x the block moves to the measured place where its energy is
/// largest.
///
/// Shapes   kspace (C, y, x) or (C, z, y, x), complex64
/// Errors   ShapeError, DTypeError: another shape or dtype
/// Cost     reads k-space once
CalibrationArea calibration_area_of(const Tensor& kspace, index_t largest = 24);

/// The samples of a block: a view, with the axes of kspace.
Tensor calibration_samples(const Tensor& kspace, const CalibrationArea& area);

/// Calibration data on a grid, from samples off the grid around the middle of k-space.
///
/// Math     of the samples with |k| <= size / 2, x minimizes |A x - y|^2 + 1e-3 |A|^2 |x|^2 by 20
///          steps of conjugate gradients, A the Nufft of an image of size^D points; then F x
/// Shapes   kspace (C, readouts, samples), trajectory (readouts, samples, D), D = 2, 3, x first
///          -> (C, size, size) or (C, size, size, size)
/// Units    trajectory in cycles per field of view
/// DTypes   complex64, float32
/// Errors   ShapeError: they do not fit; ValueError "size": below 2; "middle": fewer samples there
///          than an axis of the grid has points
Tensor calibration_from(const Tensor& kspace, const Tensor& trajectory, index_t size = 24);

}  // namespace palimpsest
