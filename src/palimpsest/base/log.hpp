// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace palimpsest {

enum class LogLevel { debug, info, warn, error, off };

/// Lines below this level are dropped; initially `warn`, or what PALIMPSEST_LOG names.
void set_log_level(LogLevel level);
/// One line to standard error. Safe to call from any thread.
void log(LogLevel level, std::string_view text);

}  // namespace palimpsest
