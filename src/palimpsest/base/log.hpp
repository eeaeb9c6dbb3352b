// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

enum class LogLevel { debug, info, warn, error, off };

/// Lines below this level are dropped; initially `warn`, or the level that the environment variable
/// PALIMPSEST_LOG names: debug, info, warn, error or off.
void set_log_level(LogLevel level);

/// Takes one message, without an end of line; the text is gone afterwards. Threads may call it at
/// the same time. An exception that it throws is dropped with the message.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Where messages go from now on; an empty function: to standard error, as at the start. When this
/// returns, no thread is in the sink before it, so what that one refers to may be destroyed.
/// Messages may come until the process ends: a sink that refers to an object has to be replaced
/// before the object is destroyed.
///
///     set_log_sink([](LogLevel level, std::string_view text) { my_log(level, text); });
///
/// Errors  StateError: called from within a sink
void set_log_sink(LogSink sink);

/// One message to the sink. Safe to call from any thread, and while the process ends.
void log(LogLevel level, std::string_view text) noexcept;

}  // namespace palimpsest
