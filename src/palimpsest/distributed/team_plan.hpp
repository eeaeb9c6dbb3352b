// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/distributed/distribute.hpp"
#include "palimpsest/graph/collective.hpp"
#include "palimpsest/plan/plan.hpp"

namespace PALIMPSEST_API palimpsest {

/// Messages that one process sends when a plan runs.
Traffic traffic_of(const Plan& plan);

/// A rank when an operator is applied.
struct RankPlan {
  int rank = 0;
  index_t peak_bytes = 0;       ///< above its part of the input and of the parameters
  index_t input_bytes = 0;      ///< of its part of the input
  index_t parameter_bytes = 0;  ///< of its parts of the parameters
  index_t total_bytes() const { return peak_bytes + input_bytes + parameter_bytes; }
  Traffic traffic;
};

/// All ranks of a team when an operator is applied, known without data and without these ranks.
struct TeamPlan {
  std::vector<RankPlan> ranks;
  /// The first of the ranks with the highest peak, and with the lowest.
  const RankPlan& largest() const;
  const RankPlan& smallest() const;
  /// Sums over ranks; synchronisations: the most of one rank.
  Traffic traffic() const;
  /// A table as text.
  std::string str() const;
};

/// Returns the memory and messages of one rank of a pretended team.
using PlanOfRank = std::function<RankPlan(const Team& seen)>;
/// Plans all ranks of a team, for any work: a solve, several operators.
/// Cost     one call for each rank
TeamPlan plan_on_team(const Team& team, const PlanOfRank& plan_of_rank);

/// The type of a rank's part of a vector with these dimensions.
TensorType part_of(TensorType x, const Dims& dims, const Team& team, const Placement& placement);

enum class Direction { forward, adjoint, normal };

/// Memory and messages of each rank when distribute(A, team, placement) is applied to a vector of
/// this type: the type for the undistributed operator, in this direction. The team may be pretended
/// or real; nothing is sent.
///
/// Errors   those of distribute(), except for agreement between ranks, which is not checked
/// Cost     one plan for each different part: at most 2 per axis of the team, whatever its size
TeamPlan plan_on_team(const NamedLinop& A, const Team& team, const Placement& placement,
                      const TensorType& x, Direction direction = Direction::forward);

struct SmallestTeamOptions {
  /// Dimensions that may be cut; empty: all that A can be cut along.
  Dims candidates = {};
  int most_ranks = 1024;
};
/// A team along one axis, "rank", with the memory and messages of its ranks.
struct SmallestTeam {
  int ranks = 1;
  Placement placement;
  TeamPlan plan;
};
/// The fewest ranks on which each holds at most `bytes`: the peak, its part of the vector and of
/// the parameters; along one dimension. Of dimensions that need as many, the one that sends least.
///
/// Errors   BudgetError naming the fewest bytes found and how many ranks they take; ShapeError "is
///          unknown": no size
/// Cost     plans the first rank for some numbers of ranks per dimension, and all of the best team
SmallestTeam smallest_team(const NamedLinop& A, index_t bytes, const TensorType& x,
                           Direction direction = Direction::forward,
                           const SmallestTeamOptions& options = {});

}  // namespace palimpsest
