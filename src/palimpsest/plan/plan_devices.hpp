// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/plan/planner.hpp"

namespace palimpsest {

/// Assigns the values of a plan to devices. A plan on one device of the host stays as it is. In
/// others every buffer gets its device, and every device an arena of its own.
void separate_devices(Plan& plan, const PlanRequest& request);

/// For a step on an accelerator without float64. Numbers may be float64: sums of float32 are, and
/// the host computes with them.
///
/// Errors   DeviceError "has no float64": the result is an array of them
void refuse_float64(const Plan& plan, const PlannedStep& step);

}  // namespace palimpsest
