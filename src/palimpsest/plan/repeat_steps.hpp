// SPDX-License-Identifier: Apache-2.0
// Internal: results that are computed twice instead of kept.
#pragma once

#include <span>
#include <vector>

#include "palimpsest/plan/plan.hpp"

namespace palimpsest {

/// A buffer that is live across the peak and idle there: it may be computed again afterwards.
struct Repetition {
  int buffer = 0;
  int step = 0;        // that writes it
  int first_late = 0;  // the first step of its later users
};

/// The cheap steps with results that are idle at step `full`, biggest first. The inputs of these
/// steps are never overwritten.
std::vector<Repetition> repetitions_at(const Plan& plan, const std::vector<bool>& is_kept,
                                       int full);

/// The plan with the step done again in front of the later users, which get the new result.
Plan with_repeated(const Plan& plan, const Repetition& repetition);

}  // namespace palimpsest
