// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// A over the first group of dimensions and B over the second.
///
/// Math     y[a', b'] = sum over a, b of A[a', a] B[b', b] x[a, b]; N = Kronecker(A.N, B.N)
/// Shapes   (dims of A, dims of B), each without a leading ellipsis. A factor with a leading
///          ellipsis on both sides acts on all slices at once, another one slice by slice
/// Errors   ShapeError "collides": a name in both factors; "ellipsis": one that is not in front;
///          ValueError "over the reals": a factor that is linear over the real numbers only
/// Cost     that of the order with the smaller result in between
NamedLinop Kronecker(const NamedLinop& A, const NamedLinop& B);

}  // namespace palimpsest
