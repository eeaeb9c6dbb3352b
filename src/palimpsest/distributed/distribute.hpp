// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/distributed/placement.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// In which order sums over ranks are added up.
enum class TeamSums {
  /// Each rank its part, then the ranks one after the other: the same bits for each run on as many
  /// ranks.
  by_rank,
  /// Index after index of the placed dimension: the same bits for any number of ranks, one
  /// included. Each index is computed by itself and held until it is added. A rank sends its result
  /// to the next one, which adds its own, and the sum back: twice the bytes, after as many steps as
  /// there are ranks.
  canonical,
};
struct DistributeOptions {
  TeamSums sums = TeamSums::by_rank;
};

/// This rank's part of an operator that all ranks of a team apply together.
///
/// The effect of a cut along a dimension depends on where A has that dimension:
///
///     in both shapes     each rank holds its part of input and output; nothing is sent
///     in oshape only     its part of the output, the whole input; the adjoint sums over ranks
///     in ishape only     its part of the input, the whole output; forward sums over ranks
///     in neither, inside its summands; both directions sum over ranks
///     nowhere            everything: all ranks compute the same
///
/// A Fourier transform along a placed dimension, alone or in a Chain, exchanges parts: for each
/// such dimension a direction sends (1 - 1/n) of this rank's part twice. Its transform is cut in
/// its place: Ky for Ny.
///
/// All ranks call it with the same operator, sizes and placement, and apply the result together.
/// A.N() keeps data where they are: one sum over ranks for an output dimension. Solvers run on it
/// as on any operator: their inner products are summed over the ranks that hold parts.
///
/// Shapes   those of A with the sizes of this rank's part, which part_range() gives
/// Aliases  parameters are views of those of A
/// Errors   SplitError: A cannot be cut along a placed dimension; ShapeError "is unknown": no size;
///          ShapeError "ranks": another operator, size or placement on another rank. An error of
///          one rank is an error of all: those that have none themselves throw it with its rank;
///          CommunicationError: a rank failed or was silent; ValueError "canonical": another
///          number of placed dimensions than one
/// Cost     a direction that sums sends 2 (n - 1)/n of its result per rank, n ranks
NamedLinop distribute(const NamedLinop& A, const Team& team, const Placement& placement,
                      const DistributeOptions& options = {});

/// The operator of which each rank has made its own part: the result of distribute() if no rank has
/// all of the data. For a dimension of the placement, `part` has this rank's range.
///
/// Shapes   those of part
/// Aliases  keeps the given node
/// Errors   ValueError, NameError: those of the placement. Parts are not compared between ranks
NamedLinop join_parts(const NamedLinop& part, const Team& team, const Placement& placement);

/// True if distribute() made this operator.
bool is_distributed(const NamedLinop& A);
/// The operator's team. ValueError if it has none.
Team team_of(const NamedLinop& A);
/// This rank's part of it. It does not communicate.
NamedLinop local_part(const NamedLinop& A);

}  // namespace palimpsest
