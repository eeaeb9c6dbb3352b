// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/run/mode.hpp"

namespace PALIMPSEST_API palimpsest {

/// FastRun, FastCompile, NoRewrite, DebugMode or NanGuardMode, the last two with the options of the
/// config.
/// Errors  ValueError: another name
Mode mode_named(std::string_view name);

}  // namespace palimpsest
