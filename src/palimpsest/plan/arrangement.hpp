// SPDX-License-Identifier: Apache-2.0
// Internal: when steps run, and where buffers lie then.
#pragma once

#include <vector>

#include "palimpsest/plan/planner.hpp"

namespace palimpsest {

/// Chooses order, lanes and offsets for a plan with steps in the graph's order, and repeats steps
/// if the budget requires it. `is_kept`, per buffer: true if it is read after the last step.
void arrange(Plan& plan, std::vector<bool> is_kept, const PlanRequest& request);

}  // namespace palimpsest
