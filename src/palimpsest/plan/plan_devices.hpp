// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/plan/planner.hpp"

namespace palimpsest {

/// Assigns the values of a plan to devices. A plan on one device of the host stays as it is. In
/// others every buffer gets its device, and every device an arena of its own.
void separate_devices(Plan& plan, const PlanRequest& request);

}  // namespace palimpsest
