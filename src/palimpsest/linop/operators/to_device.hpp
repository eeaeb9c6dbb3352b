// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Copies its input from one device to another. N is Identity.
///
/// Math     x / x / x; the adjoint copies back
/// Errors   DeviceError "expected": x is elsewhere
/// Cost     one pass; from = to: none, a view
NamedLinop ToDevice(Device from, Device to, Dims dims = "...");

}  // namespace palimpsest
