// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// Parallel rays through an image: ray t of angle a is the line on which
/// X cos(a) + Y sin(a) = (t - center) spacing, X and Y counted from the middle of the image.
struct RadonGeometry {
  index_t ny = 0, nx = 0;   // of the image, row-major
  index_t n_detectors = 0;  // rays of an angle
  double spacing = 1;       // between two rays, in pixels
  double center = 0;        // ray through the middle of the image
};

/// Sums along rays, by linear interpolation within each row that a ray crosses, or within each
/// column where it crosses more of those.
///
/// Math     y[b, a, t] = w sum_i x[b, i, p_i], w = 1 / max(|cos a|, |sin a|), the length of the ray
///          from one row to the next; x is linear between its elements and falls to 0 within one
///          pixel beyond its edges
/// Shapes   x (b.., ny, nx), angles (a), y (b.., a, n_detectors)
/// DTypes   x and y the same of float32, float64, complex64, complex128; angles float32, float64 in
///          radians; positions are computed in double precision
/// Aliases  disjoint
/// Errors   ValueError naming `who`: an angle that is not finite; nothing is written then
/// Cost     angles x rows x rays per batch entry. Up to eight entries, or four complex ones, go
///          side by side through one loop over the geometry. Results depend on the data alone
/// Source   Joseph 1982, doi:10.1109/TMI.1982.4307572
void run_radon(const RadonGeometry& geometry, const ConstView& x, const ConstView& angles,
               const MutableView& y, std::span<std::byte> scratch, std::string_view who);
/// The adjoint: each element of x gets its share of the rays that pass by.
void run_radon_adjoint(const RadonGeometry& geometry, const ConstView& y, const ConstView& angles,
                       const MutableView& x, std::span<std::byte> scratch, std::string_view who);
/// Scratch bytes of either, 64-byte aligned.
///
/// Errors   OverflowError: more than can be counted
std::size_t radon_scratch_bytes(const RadonGeometry& geometry, DType dtype, index_t n_angles,
                                index_t n_batch);

}  // namespace palimpsest
