// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/log.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "palimpsest/base/call_lock.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"

namespace palimpsest {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"debug", "info", "warning", "error",
                                                         "off"};

// In one call of the system, so that lines of several threads and processes stay whole; without
// memory or a lock, so that it works in any state of the process.
void write_line(LogLevel level, std::string_view text) noexcept {
  const std::array<std::string_view, 5> parts = {
      "palimpsest ", kLevelNames[static_cast<std::size_t>(level)], ": ", text, "\n"};
  std::array<iovec, parts.size()> pieces;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    pieces[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
  }
  // A message that cannot be written is lost.
  [[maybe_unused]] const ssize_t n =
      writev(STDERR_FILENO, pieces.data(), static_cast<int>(pieces.size()));
}

LogLevel initial_level() {
  const char* const wanted = std::getenv("PALIMPSEST_LOG");
  const std::string_view name = wanted == nullptr ? "" : wanted;
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (name == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  if (!name.empty() && name != "warn") {
    write_line(LogLevel::warn, "PALIMPSEST_LOG: got '" + std::string(name) +
                                   "', expected debug, info, warn, error or off");
  }
  return LogLevel::warn;
}

struct Log {
  std::atomic<LogLevel> level{initial_level()};
  CallLock lock;
  LogSink sink;  // guarded by lock, which calls of the sink hold
};
Log& the_log() {
  return immortal([] { return Log(); });
}

constinit thread_local bool is_in_sink = false;

}  // namespace

void set_log_level(LogLevel level) { the_log().level.store(level); }

void set_log_sink(LogSink sink) {
  if (is_in_sink) {
    throw StateError("[set_log_sink] called from within a sink. Try to call it afterwards");
  }
  Log& log = the_log();
  const std::lock_guard guard(log.lock);
  log.sink.swap(sink);
}

void log(LogLevel level, std::string_view text) noexcept {
  try {
    Log& log = the_log();
    if (level == LogLevel::off || level < log.level.load(std::memory_order_relaxed)) return;
    if (is_in_sink) return write_line(level, text);
    const std::shared_lock guard(log.lock);
    if (!log.sink) return write_line(level, text);
    is_in_sink = true;
    struct Leave {
      ~Leave() { is_in_sink = false; }
    } const leave;
    log.sink(level, text);
  } catch (...) {
    // A failed log must not end the work that it reports.
  }
}

}  // namespace palimpsest
