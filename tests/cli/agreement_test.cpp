// SPDX-License-Identifier: Apache-2.0
// Help, completion and manual page are generated from one table: they name the same commands and
// options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "cli/run_command.hpp"
#include "palimpsest/cli/commands.hpp"
#include "palimpsest/cli/manual.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::HasSubstr;

class Agreement : public ::testing::Test {
 protected:
  Agreement() : line("palimpsest", "", "") { add_commands(line); }
  CommandLine line;
};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '-' ? std::string("\\-") : std::string(1, c);
  return result;
}

// The part of a text from `begin` to the next `end`.
std::string part(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return {};
  const std::size_t to = text.find(end, from + begin.size());
  return text.substr(from, to == std::string::npos ? to : to - from);
}

TEST_F(Agreement, EveryOptionIsInHelpManualAndCompletion) {
  const auto facts = line.facts();
  ASSERT_GE(facts.size(), 10U);
  const std::string manual = run_command({"help", "man"}).out;
  const std::string bash = run_command({"completion", "bash"}).out;
  const std::string zsh = run_command({"completion", "zsh"}).out;
  const std::string fish = run_command({"completion", "fish"}).out;
  for (const CommandFacts& command : facts) {
    const std::string help = run_command({command.name, "--help"}).out;
    const std::string in_manual =
        part(manual, ".SH \"palimpsest " + escaped(command.name) + "\"", "\n.SH");
    const std::string in_bash = part(bash, "    " + command.name + ")\n", "      esac ;;");
    const std::string in_zsh = part(zsh, "    " + command.name + ")\n", ";;\n");
    EXPECT_THAT(in_manual, HasSubstr(escaped(command.description)));
    for (const OptionFacts& option : command.options) {
      for (const std::string& name : option.names) {
        EXPECT_THAT(help, HasSubstr(name)) << command.name;
        EXPECT_THAT(in_manual, HasSubstr("\\fB" + escaped(name) + "\\fR")) << command.name;
        EXPECT_THAT(in_bash, HasSubstr(name)) << command.name;
        EXPECT_THAT(in_zsh, HasSubstr("'*" + name)) << command.name;
        const std::string fish_name =
            name.size() == 2 ? " -s " + name.substr(1) : " -l " + name.substr(2);
        EXPECT_THAT(fish, HasSubstr("__fish_seen_subcommand_from " + command.name + "'"));
        EXPECT_THAT(fish, HasSubstr(fish_name)) << command.name;
      }
      EXPECT_FALSE(option.help.empty()) << command.name << " " << option.name;
      for (const std::string& word : option.choices) {
        EXPECT_THAT(help, HasSubstr(word)) << command.name;
        EXPECT_THAT(in_bash, HasSubstr(word)) << command.name;
      }
    }
  }
}

// A missing program exits with 127, which is not a failed check.
int code_of(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Agreement, BashCompletesCommandsOptionsAndWords) {
  const ScratchDirectory dir;
  write_file(dir / "complete.sh", completion_script("bash", line.facts()) +
                                      "complete_words() {\n"
                                      "  COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _palimpsest\n"
                                      "  printf '%s\\n' \"${COMPREPLY[@]}\"\n"
                                      "}\n"
                                      "complete_words palimpsest sho\n"
                                      "complete_words palimpsest recon --lam\n"
                                      "complete_words palimpsest show --part ph\n"
                                      "complete_words palimpsest completion z\n");
  if (code_of("bash --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no bash";
  ASSERT_EQ(code_of("bash '" + (dir / "complete.sh") + "' > '" + (dir / "out") + "'"), 0);
  EXPECT_EQ(read_file(dir / "out"), "show\n--lambda\nphase\nzsh\n");
}

TEST_F(Agreement, TheManualPageIsWellFormed) {
  const ScratchDirectory dir;
  write_file(dir / "palimpsest.1", manual_page(line.facts(), "1.2.3"));
  if (code_of("groff --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no groff";
  ASSERT_EQ(code_of("groff -man -Tascii -ww '" + (dir / "palimpsest.1") + "' > '" + (dir / "out") +
                    "' 2> '" + (dir / "err") + "'"),
            0);
  EXPECT_EQ(read_file(dir / "err"), "");
}

TEST(Help, TopicsSayWhatTheyPromise) {
  for (const std::string& topic : help_topics()) {
    const CommandResult result = run_command({"help", topic});
    EXPECT_EQ(result.code, 0);
    EXPECT_GT(result.out.size(), 200U) << topic;
  }
  EXPECT_THAT(run_command({"help", "reg"}).out, HasSubstr("l1wav"));
  EXPECT_THAT(run_command({"help", "exit-codes"}).out, HasSubstr("130"));
  EXPECT_EQ(run_command({"help", "regs"}).code, 2);
  EXPECT_EQ(run_command({"completion", "tcsh"}).code, 2);
}

TEST(Help, WithoutATopicIsTheListOfCommands) {
  const CommandResult result = run_command({"help"}), overview = run_command({"help", "overview"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, overview.out);
  const std::string commands = run_command({"--help"}).out;
  EXPECT_EQ(result.out.substr(0, commands.size()), commands);
  for (const std::string& topic : help_topics()) EXPECT_THAT(result.out, HasSubstr(topic));
}

TEST(Help, ForAReaderThatHasGoneIsNoError) {
  if (code_of("bash --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no bash";
  const ScratchDirectory dir;
  for (const char* words : {"help man", "completion bash", "help", "recon --help"}) {
    const std::string script = std::string("set -o pipefail; (sleep 0.1; ") + PALIMPSEST_COMMAND +
                               " " + words + ") 2> '" + (dir / "err") + "' | true";
    write_file(dir / "run.sh", script);
    EXPECT_EQ(code_of("bash '" + (dir / "run.sh") + "'"), 0) << words;
    EXPECT_EQ(read_file(dir / "err"), "") << words;
  }
}

}  // namespace
}  // namespace palimpsest::cli
