// SPDX-License-Identifier: Apache-2.0
// Errors of the library name its options, and the command prints its own names for them.
#include "palimpsest/cli/option_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <set>

#include "cli/run_command.hpp"
#include "palimpsest/cli/commands.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OptionWords, TakeThePlaceOfWholeNames) {
  EXPECT_EQ(in_words_of_command("[ScanOptions.slice] Try ScanOptions.as T=set, or ScanOptions.set"),
            "[--slice] Try --as T=set, or --set");
  EXPECT_EQ(in_words_of_command("Try ScanReconstructionOptions.budget 14789440"),
            "Try --memory 14789440");
  EXPECT_EQ(in_words_of_command("Try k-space from fake_kspace()"),
            "Try k-space from palimpsest simulate --image");
}

TEST(OptionWords, LeaveOtherWordsAlone) {
  for (const char* text : {"", "ScanOptions", "ScanOptions.settings", "MyScanOptions.set",
                           "[scan] slice 3 of kspace.npy", "ScanOptions."}) {
    EXPECT_EQ(in_words_of_command(text), text);
  }
}

TEST(OptionWords, AreOptionsAndCommands) {
  CommandLine line("palimpsest", "", "");
  add_commands(line);
  std::set<std::string> words;
  for (const CommandFacts& command : line.facts()) {
    words.insert("palimpsest " + command.name);
    for (const OptionFacts& option : command.options) {
      words.insert(option.names.begin(), option.names.end());
    }
  }
  for (const OptionWord& row : option_words()) {
    const std::string word = row.word;  // an option, which may have a value, or a command
    const auto end = word.find(word.starts_with("--") ? " " : " --");
    EXPECT_TRUE(words.count(word.substr(0, end))) << word;
  }
}

TEST(OptionWords, AreForTheCommandAlone) {
  const ScratchDirectory dir;
  write_npy(dir / "k.npy", Tensor::random_normal({4, 32, 32}, DType::complex64, {9, 3}));
  ScanReconstructionOptions options;
  options.kspace = dir / "k.npy";
  options.budget = 1000;
  testing::expect_error<BudgetError>([&] { ScanReconstruction{options}; },
                                     "Try ScanReconstructionOptions.budget ");
  options.scan.slice = 1;
  testing::expect_error<ValueError>([&] { ScanReconstruction{options}; },
                                    "Try without ScanOptions.slice");
  const CommandResult budget =
      run_command({"recon", dir / "k.npy", "-o", dir / "x.png", "--memory", "1000"});
  EXPECT_EQ(budget.code, 1);
  EXPECT_THAT(budget.err, HasSubstr("recon: [--memory] nothing fits into the budget: got 1,000"));
  EXPECT_THAT(budget.err, HasSubstr("Try --memory "));
  EXPECT_THAT(budget.err, Not(HasSubstr("Options.")));
  const CommandResult slice =
      run_command({"recon", dir / "k.npy", "-o", dir / "x.png", "--slice", "1"});
  EXPECT_EQ(slice.code, 2);
  EXPECT_THAT(slice.err, HasSubstr("[--slice] " + (dir / "k.npy") + " is an array"));
  EXPECT_THAT(slice.err, HasSubstr("Try without --slice"));
  EXPECT_EQ(dir.names(), std::vector<std::string>{"k.npy"});
}

}  // namespace
}  // namespace palimpsest::cli
