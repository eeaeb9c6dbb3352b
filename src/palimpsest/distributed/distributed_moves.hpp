// SPDX-License-Identifier: Apache-2.0
// Internal: operators that cannot be cut along a placed dimension unless ranks give each other
// elements first.
#pragma once

#include "palimpsest/distributed/parts_operator.hpp"

namespace palimpsest::distributed_detail {

/// This rank's part of a difference or convolution along placed dimensions. Neighbours send the
/// elements that the stencil reads beyond the part; the adjoint sends their sums back. Undefined if
/// A is another operator, or `refused` (positions of axes) are not those of its stencil.
NamedLinop distributed_stencil(const NamedLinop& A, const Team& team, const Placement& placement,
                               const Axes& refused);

/// This rank's part of an operator that acts along placed axes as a whole: the cut moves to another
/// axis, along which the operator can be cut, and back. Without such an axis all ranks compute a
/// wavelet transform of the whole array.
/// Errors   SplitError: no such axis
NamedLinop distributed_elsewhere(const NamedLinop& A, const Team& team, const Placement& placement,
                                 const Axes& refused);

}  // namespace palimpsest::distributed_detail
