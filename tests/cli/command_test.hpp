// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_command.hpp"

namespace palimpsest::cli {

/// Tests of the command in a folder of their own.
class CommandTest : public ::testing::Test {
 protected:
  static CommandResult run(const std::vector<std::string>& words) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, 0) << ::testing::PrintToString(words) << "\n" << result.err;
    return result;
  }
  /// The error has the text, and the folder is as before.
  void refuse(const std::vector<std::string>& words, const std::string& text, int code = 2) const {
    const auto before = dir.names();
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, code) << ::testing::PrintToString(words) << result.err;
    EXPECT_THAT(result.err, ::testing::HasSubstr(text)) << ::testing::PrintToString(words);
    EXPECT_EQ(dir.names(), before) << ::testing::PrintToString(words);
  }
  /// The report of a run, which keeps to the announced peak and comes near to it; null: it failed.
  static nlohmann::json report_of(const std::vector<std::string>& words) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, 0) << result.err;
    if (result.code != 0) return {};
    nlohmann::json report = nlohmann::json::parse(result.out);
    const auto announced = report.at("announced_peak_bytes").get<double>();
    const auto measured = report.at("measured_peak_bytes").get<double>();
    EXPECT_GE(announced, measured) << report;
    EXPECT_LE(announced, 1.05 * measured) << report;
    return report;
  }

  ScratchDirectory dir;
};

}  // namespace palimpsest::cli
