// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/ops/transforms/radon.hpp"

namespace PALIMPSEST_API palimpsest {

struct RadonLinopOptions {
  /// Elements of the detector; default as many as see the whole image at every angle.
  std::optional<index_t> n_detectors = {};
  /// Distance between two elements, in pixels.
  double spacing = 1.0;
  /// Element, from 0, whose ray goes through the middle of the image; default the middle one.
  std::optional<double> center = {};
  Dims batch = "...";
  /// Names of the image's rows and columns.
  Dims image = "Ny Nx";
  /// Names of the angles and of the detector's elements.
  Dims output = "A R";
};
/// Slices to their sinograms: line integrals along parallel rays. The adjoint is back projection
/// without a filter.
///
/// Ray t of angle a is the line X cos a + Y sin a = (t - center) spacing, X and Y counted from the
/// middle of the image.
///
/// Math     y[b, a, t] = w sum_i x[b, i, p_i] for |cos a| >= |sin a|, with p_i where the ray
///          crosses row i and w = 1 / |cos a| its way between two rows; else the same over columns.
///          Between elements x is linear, and it falls to 0 within one pixel beyond its edges
/// Shapes   (b.., ny, nx) to (b.., a, n_detectors). Batches, angles and detector elements can be
///          cut, with the same bits; the image cannot
/// Units    angles in radians; integrals in the unit of x times pixels
/// DTypes   any floating or complex, with angles of its precision
/// Errors   ValueError "angles" (not finite), "image_size", "n_detectors", "spacing", "center";
///          DTypeError, ShapeError: angles are not one axis of floating numbers
/// Cost     angles max(ny, nx) n_detectors per image; scratch: the images twice and their
///          sinograms, of up to eight real or four complex images at a time
/// Source   Joseph 1982, doi:10.1109/TMI.1982.4307572
NamedLinop Radon(Parameter angles, Extents image_size, RadonLinopOptions options = {});

/// Sinograms to slices: the adjoint of a Radon operator after a ramp filter along the detector. An
/// approximate inverse for many angles, in the units of the slices. It goes along rays, so a fine
/// pattern stays: the middle element of an odd image, which a ray of each angle meets, can be a
/// fifth too large.
///
/// Math     x = step A^H (h * y), h[0] = 1/4, h[k] = -1 / (pi k)^2 for odd k, else 0; step is the
///          mean distance of the angles, at most pi / angles
/// Shapes   those of A.H()
/// Errors   ValueError: A is not a Radon operator
/// Cost     that of A.H(), and a Fourier transform of each row of the sinograms there and back
/// Source   Kak & Slaney 1988, chapter 3, equation 61, doi:10.1137/1.9780898719277
NamedLinop filtered_back_projection(const NamedLinop& A);

}  // namespace palimpsest
