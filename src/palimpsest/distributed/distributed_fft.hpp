// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/distributed/placement.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace palimpsest::distributed_detail {

/// True if A transforms a dimension that the placement cuts.
bool transforms_placed(const NamedLinop& A, const Placement& placement);

/// This rank's part of a Fourier transform with cut dimensions among the transformed ones.
///
/// First all other axes are transformed in place. Then for each cut dimension the array is cut
/// along another axis instead (`ExchangeParts`), the dimension is transformed, and the cut moves
/// back.
/// Errors   SplitError: there is no other axis to cut, or an ellipsis hides axes; ShapeError "is
///          unknown"
NamedLinop distributed_fft(const NamedLinop& A, const Team& team, const Placement& placement);

/// Placement of A x for an x that is placed as `placement`: a dimension that A transforms gets its
/// new name. placement_before: that of x for an A x that is placed as `placement`.
Placement placement_behind(const NamedLinop& A, const Placement& placement);
Placement placement_before(const NamedLinop& A, const Placement& placement);

}  // namespace palimpsest::distributed_detail
