// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/ops/transforms/nufft_geometry.hpp"

// Common parts of the sources of Nufft.
namespace palimpsest {

/// The options that a node was made with, as far as they concern the transform.
NufftOptions nufft_options(const NamedLinop& A);
NufftGeometry nufft_geometry(const NamedLinop& A);
bool is_sampling(const NamedLinop& A);
/// The element of the padded grid next to each point, along one axis.
Variable nearest_index(const NufftGeometry& g, const Variable& locs, std::size_t d);

/// End of an error: the allowed inner operators of a Toeplitz normal operator.
inline constexpr const char* kExpectedInner =
    ", expected none, Identity, Scalar, a Diagonal over the points, or a Dense over batch "
    "dimensions "
    "that acts point by point";
/// The Toeplitz normal operator; undefined if this inner operator has none.
NamedLinop toeplitz_normal(const NamedLinop& A, const NamedLinop* inner);
/// True if it is less work than A^H A.
bool is_toeplitz_cheaper(const NamedLinop& A);
/// Largest difference between A.N x and A^H A x, relative to |A|^2 |x|; 0 if it is rounding.
double nufft_normal_allowance(const NamedLinop& A);

}  // namespace palimpsest
