// SPDX-License-Identifier: Apache-2.0
// docs/command.md shows what --help prints. With PALIMPSEST_WRITE_DOCS set it is written instead.
#include <gtest/gtest.h>

#include "cli/run_command.hpp"
#include "palimpsest/cli/commands.hpp"
#include "support/page_part.hpp"

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
  testing::expect_page_has(PALIMPSEST_SOURCE_DIR "/docs/command.md", made,
                           "<!-- begin of the help -->\n", "\n<!-- end of the help -->");
}

}  // namespace
}  // namespace palimpsest::cli
