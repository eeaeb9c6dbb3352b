// SPDX-License-Identifier: Apache-2.0
// Internal: pixels of an image between those that were measured.
#pragma once

#include <span>

#include "palimpsest/imaging/scan.hpp"

namespace palimpsest {

/// ValueError: numbers of pixels or fields of view that are not 2 or 3 positive ones.
void check_pixels(const ScanOptions& options);
/// The number of pixels that was asked for along x, y or z; 0: none.
index_t asked_pixels(const ScanOptions& options, std::size_t axis);
/// Field of view of the image along x, y or z: asked for, or of the header; 0: not known.
double image_field_mm(const RawScanHeader& header, const ScanOptions& options, std::size_t axis);

/// The image along an axis of k-space with `points` points, by the facts of the header and the
/// wishes of the options. `axis` counts x, y, z.
ImageAxis image_axis(const RawScanHeader& header, const ScanOptions& options, std::size_t axis,
                     index_t points);

/// The pixels out of an image of all points, or out of its k-space (unitary, centred).
///
/// Math     pixel i = sum over k of s_k exp(2 pi i k x_i / points), x_i = (i - floor(pixels / 2))
///          spacing; k from -w to w, w half of points or of points / spacing, the smaller one; 0
///          where |x_i| > points / 2
/// Shapes   complex64 (pixels, points)
Tensor pixels_of_image(const ImageAxis& axis);
Tensor pixels_of_kspace(const ImageAxis& axis);

/// Takes the image out of an array whose last axes are those of a solve: edges are cut off, pixels
/// between the measured ones are computed. Both are exact: k-space is filled with zeros, or cut.
class PixelTaker {
 public:
  PixelTaker(const Extents& given, std::span<const ImageAxis> axes);

  /// Extents of the result.
  Extents shape() const;
  /// Peak bytes of take(), given array and result included; 0 if the result is a view of it.
  index_t peak_bytes() const;
  /// complex64. Releases the given array as soon as it is not needed.
  Tensor take(Tensor image) const;

 private:
  std::size_t axis_of(std::size_t k) const { return given_.size() - axes_.size() + k; }

  Extents given_;
  std::vector<ImageAxis> axes_;
};

}  // namespace palimpsest
