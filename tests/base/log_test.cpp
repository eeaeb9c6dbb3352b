// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/log.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

std::string logged(LogLevel threshold, LogLevel level, std::string_view text) {
  set_log_level(threshold);
  ::testing::internal::CaptureStderr();
  log(level, text);
  set_log_level(LogLevel::warn);
  return ::testing::internal::GetCapturedStderr();
}

// Redirects messages to `sink`, and back to standard error at its end.
struct SinkScope {
  explicit SinkScope(LogSink sink) { set_log_sink(std::move(sink)); }
  ~SinkScope() { set_log_sink(nullptr); }
};

TEST(Log, WritesOneLineToStandardError) {
  const std::string line = logged(LogLevel::info, LogLevel::info, "100 % {done}");
  EXPECT_EQ(line, "palimpsest info: 100 % {done}\n");
}

TEST(Log, DropsLinesBelowItsLevel) {
  EXPECT_EQ(logged(LogLevel::warn, LogLevel::info, "text"), "");
  EXPECT_EQ(logged(LogLevel::off, LogLevel::error, "text"), "");
  EXPECT_NE(logged(LogLevel::debug, LogLevel::debug, "text"), "");
  EXPECT_NE(logged(LogLevel::warn, LogLevel::error, "text"), "");
  EXPECT_EQ(logged(LogLevel::debug, LogLevel::off, "text"), "");
}

TEST(Log, ASinkTakesWhatIsLoggedInsteadOfStandardError) {
  std::vector<std::string> lines;
  {
    const SinkScope scope([&](LogLevel level, std::string_view text) {
      lines.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(text));
    });
    EXPECT_EQ(logged(LogLevel::info, LogLevel::info, "one"), "");
    EXPECT_EQ(logged(LogLevel::info, LogLevel::error, "two"), "");
    EXPECT_EQ(logged(LogLevel::warn, LogLevel::info, "below the level"), "");
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"1 one", "3 two"}));
  EXPECT_EQ(logged(LogLevel::info, LogLevel::warn, "after"), "palimpsest warning: after\n");
}

TEST(Log, ASinkThatThrowsDoesNotDisturbWhoLogs) {
  const SinkScope scope([](LogLevel, std::string_view) { throw std::runtime_error("no"); });
  EXPECT_EQ(logged(LogLevel::info, LogLevel::error, "text"), "");
}

TEST(Log, ASinkThatLogsWritesToStandardError) {
  const SinkScope scope([](LogLevel level, std::string_view) { log(level, "from within"); });
  EXPECT_EQ(logged(LogLevel::info, LogLevel::error, "text"), "palimpsest error: from within\n");
}

TEST(Log, ASinkCannotReplaceItself) {
  const SinkScope scope([](LogLevel, std::string_view) {
    expect_error<StateError>([] { set_log_sink(nullptr); }, "called from within a sink");
  });
  log(LogLevel::error, "text");
}

// The caller that replaces a sink may destroy the objects it refers to.
TEST(Log, NoThreadIsInASinkThatWasReplaced) {
  constexpr int kCalls = 300;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) log(LogLevel::error, "text");
    });
  }
  std::atomic<int> late{0}, calls{0};
  while (calls < kCalls) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    set_log_sink([&, alive = alive.get()](LogLevel, std::string_view) {
      ++calls;
      std::this_thread::yield();
      if (!*alive) ++late;
    });
    set_log_sink([](LogLevel, std::string_view) {});
    *alive = false;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  set_log_sink(nullptr);
  EXPECT_EQ(late, 0);
}

using LogDeathTest = ::testing::Test;

TEST(LogDeathTest, TheEnvironmentNamesTheLevelAndAWrongOneIsTold) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto end_with = [](const char* level) {
    setenv("PALIMPSEST_LOG", level, 1);
    log(LogLevel::info, "seen");
    std::_Exit(0);
  };
  EXPECT_EXIT(end_with("info"), ::testing::ExitedWithCode(0), "palimpsest info: seen");
  EXPECT_EXIT(end_with("loud"), ::testing::ExitedWithCode(0),
              "palimpsest warning: PALIMPSEST_LOG: got 'loud', expected debug");
}

}  // namespace
}  // namespace palimpsest
