// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/calibration.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Brightness of an image: the median, the 90th percentile and the maximum of its magnitudes.
struct Brightness {
  double median = 0, p90 = 0, largest = 0;

  /// The unit in which weights of regularizers are meant: p90, or the largest where that is far
  /// above it, as bright spots are; 1 of an image of zeros.
  double scale() const;
};

/// The brightness of the root-sum-of-squares image of coil images.
///
/// Math     of the sorted magnitudes m_0 .. m_(n-1): m_[n/2], m_[trunc(0.9 n)], m_(n-1)
/// Shapes   coil_images (C, ..)
/// DTypes   complex64
/// Errors   ShapeError, DTypeError: not such an array, or an empty one
Brightness brightness(const Tensor& coil_images);

/// The brightness of magnitudes, which are sorted in place.
///
/// DTypes   float32
/// Aliasing magnitudes is overwritten
/// Errors   DTypeError; ShapeError: not dense, or empty
/// Cost     no memory
Brightness brightness_of_magnitudes(Tensor& magnitudes);

/// The brightness of the image from the middle of k-space, at most 32 points along each axis, per
/// point of the whole grid.
///
/// Shapes   kspace (C, y, x) or (C, z, y, x), centred; area: part of its calibration area
/// Errors   ShapeError, DTypeError: not such an array; ValueError: an empty area
/// Cost     memory of brightness_bytes()
Brightness brightness_of(const Tensor& kspace, const CalibrationArea& area);
/// The most that brightness_of() holds.
index_t brightness_bytes(const CalibrationArea& area);

/// The calibration area for it: calibration_area_of() with at most 32 points along an axis.
CalibrationArea brightness_area(const Tensor& kspace);

/// Root of the sum of squares over coils, float32.
///
/// Shapes   coil_images (C, ..) -> (..)
/// Errors   ShapeError, DTypeError: not complex64, or without axes
Tensor rss_image(const Tensor& coil_images);

}  // namespace palimpsest
