// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_command.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {

using Json = nlohmann::json;

// Bytes allowed for numbers that compiled programs keep.
constexpr double kProgramBytes = 2048;

// Runs of `recon` in a separate folder; each must keep its announced peak.
class ReconRuns : public ::testing::Test {
 protected:
  CommandResult run(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
  }
  // Returns the image, and the report in `report`. Checks that the announced peak equals the
  // measured one.
  Tensor recon(const std::vector<std::string>& given, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"recon", "--save", dir / "o.npy", "--json"};
    words.insert(words.end(), given.begin(), given.end());
    const CommandResult result = run(words, more);
    EXPECT_EQ(result.code, 0) << result.err;
    if (result.code != 0) return Tensor::zeros({1}, DType::complex64);
    report = Json::parse(result.out);
    const auto announced = report.at("announced_peak_bytes").get<double>();
    const auto measured = report.at("measured_peak_bytes").get<double>();
    EXPECT_GE(announced, measured) << report.at("plan");
    EXPECT_LE(announced, measured + kProgramBytes) << report.at("plan");
    return read_npy(dir / "o.npy");
  }
  std::string refusal(const std::vector<std::string>& given,
                      const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"recon"};
    words.insert(words.end(), given.begin(), given.end());
    if (std::find(more.begin(), more.end(), "--save") == more.end()) {
      words.insert(words.end(), {"--save", dir / "o.npy"});
    }
    const CommandResult result = run(words, more);
    EXPECT_EQ(result.code, 2) << result.out << result.err;
    return result.err;
  }
  index_t smallest(const std::vector<std::string>& given, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"recon", "--memory", "1k", "--save", dir / "none.npy"};
    words.insert(words.end(), given.begin(), given.end());
    const std::string error = run(words, more).err, before = "Try --memory ";
    EXPECT_THAT(error, ::testing::HasSubstr(before));
    return std::stoll(error.substr(error.find(before) + before.size()));
  }

  ScratchDirectory dir;
  Json report;
};

}  // namespace palimpsest::cli
