// SPDX-License-Identifier: Apache-2.0
// Internal: when steps run, and where buffers lie then.
#pragma once

#include <vector>

#include "palimpsest/plan/planner.hpp"

namespace palimpsest {

/// Chooses order, lanes and offsets for a plan whose steps are in the graph's order, and repeats
/// steps where the budget asks for that. `is_kept`, per buffer: is it looked at after the last
/// step?
void arrange(Plan& plan, std::vector<bool> is_kept, const PlanRequest& request);

}  // namespace palimpsest
