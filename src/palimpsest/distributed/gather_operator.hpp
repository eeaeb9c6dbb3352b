// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// The operator that the ranks of a team apply together, on rank `root` alone: the parts of the
/// ranks side by side, as Concat joins them along dimensions of the input or output and Add those
/// that are summed over. It knows no ranks. All ranks call it.
///
/// Shapes   those of the undistributed operator
/// Aliases  none: parameters are copies of those that the ranks have now
/// Errors   ValueError: no part of A was made by distribute() or join_parts(), or an operator
///          beside such parts has other parameters on another rank; FormatError: one that save()
///          refuses; CommunicationError; ShapeError "undefined size": dimensions without names, cut
///          along two axes
/// Cost     each rank sends the bytes of its parameters to `root`
std::optional<NamedLinop> gather_operator(const NamedLinop& A, int root = 0);

/// Writes gather_operator(A) to a file, by rank 0. load() reads it in any number of processes; to
/// share it among ranks again, distribute the loaded operator. All ranks call this function, and
/// return when the file is there.
///
/// Errors   those of gather_operator() and save(); a failure of rank 0 is a CommunicationError on
///          the others
void save_distributed(const NamedLinop& A, const std::string& path);

}  // namespace palimpsest
