// SPDX-License-Identifier: Apache-2.0
// docs/command.md shows what --help prints. With PALIMPSEST_WRITE_DOCS set it is written instead.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/run_command.hpp"
#include "palimpsest/cli/commands.hpp"

namespace palimpsest::cli {
namespace {

TEST(Reference, IsWhatTheHelpSays) {
  CommandLine line("palimpsest", "", "");
  add_commands(line);
  std::vector<std::string> commands = line.commands();
  commands.insert(commands.begin(), "");
  std::string made;
  for (const std::string& command : commands) {
    const CommandResult help =
        command.empty() ? run_command({"--help"}) : run_command({command, "--help"});
    ASSERT_EQ(help.code, 0);
    made += "\n## palimpsest" + (command.empty() ? "" : " " + command) + "\n\n```text\n" +
            help.out + "```\n";
  }
  const std::string page = PALIMPSEST_SOURCE_DIR "/docs/command.md";
  const std::string text = read_file(page);
  const std::string begin = "<!-- begin of the help -->\n", end = "\n<!-- end of the help -->";
  const std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  if (std::getenv("PALIMPSEST_WRITE_DOCS") != nullptr) {
    write_file(page, text.substr(0, from + begin.size()) + made + text.substr(to));
    return;
  }
  EXPECT_EQ(text.substr(from + begin.size(), to - from - begin.size()), made)
      << "Try to run this test with PALIMPSEST_WRITE_DOCS=1";
}

}  // namespace
}  // namespace palimpsest::cli
