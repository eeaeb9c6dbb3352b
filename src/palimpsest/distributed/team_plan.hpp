// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/distributed/distribute.hpp"
#include "palimpsest/graph/collective.hpp"
#include "palimpsest/plan/plan.hpp"

namespace PALIMPSEST_API palimpsest {

/// Messages that one process sends when a plan runs.
Traffic traffic_of(const Plan& plan);

/// One rank when an operator is applied.
struct RankPlan {
  int rank = 0;
  index_t peak_bytes = 0;       ///< above its part of the input and of the parameters
  index_t input_bytes = 0;      ///< of its part of the input
  index_t parameter_bytes = 0;  ///< of its parts of the parameters
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
  /// A table for people.
  std::string str() const;
};

enum class Direction { forward, adjoint, normal };

/// What distribute(A, team, placement) will hold and send on each rank when it is applied to a
/// vector of this type, which is that of the undistributed operator in this direction. The team may
/// be pretended or real; nothing is sent.
///
/// Errors   those of distribute(), but for agreement, which is not checked
/// Cost     one plan for each different part: at most 2 per axis of the team, whatever its size
TeamPlan plan_on_team(const NamedLinop& A, const Team& team, const Placement& placement,
                      const TensorType& x, Direction direction = Direction::forward);

}  // namespace palimpsest
