// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <functional>
#include <string>

#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

// Frames of a series that lie in a subspace: x_t = sum over b of basis[t, b] c_b. The coefficient
// images c take the place of the frames.

/// The basis as complex64 (T, B), dense, from numbers (T, B).
///
/// Errors   ValueError beginning with `who`: other rows than frames, more columns than rows, NaN, a
///          column of zeros, magnitudes that leave single precision
Tensor checked_basis(const std::string& who, const Tensor& basis, index_t frames);

/// The frame with this row of the basis, from coefficients (B, ..) with these dimensions behind B.
NamedLinop frame_of_coefficients(const Tensor& basis, index_t frame, const Dims& image);

/// The frames (T, ..) of coefficients (B, ..).
NamedLinop frames_of_coefficients(const Tensor& basis, const Dims& others);

/// Weights of k-space points of all frames, seen by coefficients.
///
/// Math     K[a, b, k] = sum over t of conj(basis[t, a]) w[t, k] basis[t, b]
/// Shapes   w of a frame: real or bool, of `grid`; K complex64 (B, B, grid)
Tensor subspace_weights(const Tensor& basis, const Extents& grid,
                        const std::function<Tensor(index_t frame)>& weights_of);

/// These weights as an operator on k-space (B, C, grid).
NamedLinop subspace_weighting(const Parameter& weights, const Dims& grid);

}  // namespace palimpsest
