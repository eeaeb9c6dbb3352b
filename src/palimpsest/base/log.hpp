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

/// Sets the sink of all later messages; an empty function restores standard error, the default. On
/// return no thread is in the previous sink, so objects that it refers to may be destroyed.
/// Messages may come until the process ends: replace a sink that refers to an object before you
/// destroy the object.
///
///     set_log_sink([](LogLevel level, std::string_view text) { my_log(level, text); });
///
/// Errors  StateError: called from within a sink
void set_log_sink(LogSink sink);

/// A message to the sink. Safe to call from any thread, and while the process ends.
void log(LogLevel level, std::string_view text) noexcept;

}  // namespace palimpsest
