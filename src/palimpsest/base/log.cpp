// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

namespace palimpsest {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "palimpsest", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    const char* level = std::getenv("PALIMPSEST_LOG");
    made->set_level(level ? spdlog::level::from_str(level) : spdlog::level::warn);
    made->set_pattern("palimpsest %^%l%$: %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum translate(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(translate(level)); }
void log(LogLevel level, std::string_view text) { logger().log(translate(level), "{}", text); }

}  // namespace palimpsest
