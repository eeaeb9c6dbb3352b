// SPDX-License-Identifier: Apache-2.0
// Internal: axes of k-space along which masks do not change. There the transforms of the normal
// operator cancel.
#pragma once

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

/// Sets extents[k] to the mask's extent along each axis k on which the mask changes; starts with 1
/// for all axes, and is called with every mask. The mask may have more axes in front.
void note_changes(const Tensor& mask, Extents& extents);

/// The first elements along axes of extent 1, a view.
Tensor shortened_mask(const Tensor& mask, const Extents& extents);

/// The factors of the data: real numbers as they are, of whole ones true where they are not 0.
///
/// Errors   DTypeError: complex
Tensor factors_of_mask(const Tensor& mask);

}  // namespace palimpsest
