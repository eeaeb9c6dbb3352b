// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/plan/planner.hpp"

namespace palimpsest {

/// Where the values of a plan live. A plan on one device stays as it is; in one on several every
/// buffer gets its device, and every device an arena of its own.
void separate_devices(Plan& plan, const PlanRequest& request);

}  // namespace palimpsest
