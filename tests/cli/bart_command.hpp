// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_command.hpp"

namespace palimpsest::cli {

/// Commands of BART and ours in one folder; skipped where BART is not installed.
class BesideBart : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("bart version > /dev/null 2>&1") != 0) GTEST_SKIP() << "bart is not installed";
  }
  // A single thread: with several the low-rank thresholds of 0.8 change from run to run.
  void bart(const std::string& words) {
    const std::string line =
        "cd '" + dir.path() + "' && OMP_NUM_THREADS=1 bart " + words + " > /dev/null 2>&1";
    ASSERT_EQ(std::system(line.c_str()), 0) << words;
  }
  void ours(const std::vector<std::string>& words) {
    const CommandResult result = run_command(words);
    ASSERT_EQ(result.code, 0) << ::testing::PrintToString(words) << result.err;
  }
  double nrmse(const std::string& theirs, const std::string& own, bool complex = true) {
    std::vector<std::string> words = {"compare", dir / theirs, dir / own,
                                      "--mask",  "none",       "--json"};
    if (complex) words.emplace_back("--complex");
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? nlohmann::json::parse(result.out)["images"][0]["nrmse"].get<double>()
                            : 1.0;
  }
  ScratchDirectory dir;
};

}  // namespace palimpsest::cli
