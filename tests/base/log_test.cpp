// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/log.hpp"

#include <gtest/gtest.h>

#include <string>

namespace palimpsest {
namespace {

std::string logged(LogLevel threshold, LogLevel level, std::string_view text) {
  set_log_level(threshold);
  testing::internal::CaptureStderr();
  log(level, text);
  set_log_level(LogLevel::warn);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, WritesOneLineToStandardError) {
  const std::string line = logged(LogLevel::info, LogLevel::info, "100 % {done}");
  EXPECT_NE(line.find("info: 100 % {done}\n"), std::string::npos) << line;
  EXPECT_EQ(line.find("palimpsest "), 0u) << line;
}

TEST(Log, DropsLinesBelowItsLevel) {
  EXPECT_EQ(logged(LogLevel::warn, LogLevel::info, "text"), "");
  EXPECT_EQ(logged(LogLevel::off, LogLevel::error, "text"), "");
  EXPECT_NE(logged(LogLevel::debug, LogLevel::debug, "text"), "");
  EXPECT_NE(logged(LogLevel::warn, LogLevel::error, "text"), "");
}

}  // namespace
}  // namespace palimpsest
