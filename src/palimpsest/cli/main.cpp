// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <string_view>

#include "palimpsest/cli/commands.hpp"
#include "palimpsest/cli/standard_output.hpp"

namespace {

// Ends the program when a mapped file was shortened by another process: its pages cannot be read.
extern "C" void end_after_bus_error(int) {
  constexpr std::string_view kText =
      "palimpsest: a mapped file became shorter while it was read, or its disk failed. Try again "
      "when no program writes to it\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(palimpsest::cli::kFailed);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace palimpsest::cli;
  // A write beyond the limit on file sizes then fails like one on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  // A reader that has gone is a failed write too, after which nothing is left behind.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGBUS, end_after_bus_error);
  open_standard_files();
  CommandLine line("palimpsest", "Reconstructs images from raw scans on a known number of bytes.",
                   "palimpsest " PALIMPSEST_VERSION);
  add_commands(line);
  return line.run(argc, argv);
}
