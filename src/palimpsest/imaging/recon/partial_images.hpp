// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/imaging/partial_fourier.hpp"

namespace palimpsest {

/// Fills the missing side along the axis, as homodyne() and pocs() do, but for images (.., y, x):
/// only the axis of the lines is transformed. `lines.axis` counts from the front.
Tensor with_missing_side(const Tensor& image, const PartialLines& lines, PartialFourier method,
                         int pocs_iterations = 10);

/// Peak bytes of with_missing_side() beside the image, its result included.
index_t plan_missing_side(const Extents& image, const PartialLines& lines, PartialFourier method);

/// exp(i phase) of real numbers, in radians, and v / |v| of complex ones, 1 for 0: into `factors`,
/// complex64, any strides.
void set_phase_factors(Tensor factors, const Tensor& phase);

}  // namespace palimpsest
