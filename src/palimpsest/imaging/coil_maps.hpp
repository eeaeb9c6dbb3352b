// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Receive sensitivities of straight wires that run through the image plane on a ring around it.
///
/// Math     s_c(z) = u_c / (z - z_c), the transverse field of a wire at z_c = radius * u_c, with
///          u_c = exp(2 pi i c / n) and z = x + i y; then scaled so that sum over c of |s_c|^2 = 1
/// Shapes   (n_coils, ny, nx) complex64; the field of view is [-1, 1]^2
/// Errors   ValueError: no coils, an empty size, a radius that puts wires into the field (<= 1.42)
/// Source   Biot & Savart; Roemer et al. 1990, doi:10.1002/mrm.1910160203 for the scaling
Tensor ring_coil_maps(index_t n_coils, index_t ny, index_t nx, double radius = 1.5);

}  // namespace palimpsest
