// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/ops/control/debugging.hpp"

namespace PALIMPSEST_API palimpsest {

/// Identity that takes its time.
///
/// Math     x / x / x
/// Errors   ValueError "seconds": negative or not finite
/// Cost     waits in the forward direction only; moves no data
NamedLinop Sleep(double seconds = 0.1, Dims dims = "...");

/// Identity that calls a hook each time it runs, with its direction: one call per application, two
/// of a normal operator. It is never merged with another one, left out, or folded into its
/// neighbours.
///
/// Math     x / x / x
/// Errors   ValueError "hook": no hook of this name was set. See set_breakpoint_hook
/// Cost     none but the hook's
NamedLinop Breakpoint(Dims dims, std::string hook);

}  // namespace palimpsest
