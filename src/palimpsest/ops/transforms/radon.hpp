// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// A detector of equally spaced elements, across parallel rays.
struct RadonOptions {
  /// Elements; default as many as see the whole image at every angle.
  std::optional<index_t> n_detectors = {};
  /// Distance between two elements, in pixels.
  double spacing = 1.0;
  /// Element, from 0, whose ray goes through the middle of the image; default the middle one.
  std::optional<double> center = {};
};

namespace ops {

/// Line integrals of images along parallel rays: the sinogram of a slice.
///
/// Ray t of angle a is the line X cos a + Y sin a = (t - center) spacing, with X = column - (nx -
/// 1) / 2 and Y = row - (ny - 1) / 2. At angle 0 it adds up a column, at pi / 2 a row.
///
/// Math     y[b, a, t] = w sum_i x[b, i, p_i] for |cos a| >= |sin a|, with p_i where the ray
///          crosses row i and w = 1 / |cos a| its way between two rows; else the same over columns.
///          Between elements x is linear, and it falls to 0 within one pixel beyond its edges
/// Shapes   x (b.., ny, nx), ny and nx known; angles (a); y (b.., a, n_detectors)
/// Units    angles in radians; integrals in the unit of x times pixels
/// DTypes   any floating or complex x; angles float32 or float64
/// Aliases  none
/// Errors   ShapeError: fewer than two axes, unknown extents; ValueError "spacing", "center",
///          "n_detectors", "angles"; NotSupported "angles": a gradient with respect to the angles
/// Cost     angles max(ny, nx) n_detectors per image; scratch: the images twice and their
///          sinograms, of up to eight real or four complex images at a time
/// Source   Joseph 1982, doi:10.1109/TMI.1982.4307572
Variable radon(const Variable& x, const Variable& angles, RadonOptions options = {});
/// Its exact adjoint for images of this size: back projection without a filter.
Variable radon_adjoint(const Variable& y, const Variable& angles, const Extents& image_size,
                       RadonOptions options = {});

}  // namespace ops
}  // namespace palimpsest
