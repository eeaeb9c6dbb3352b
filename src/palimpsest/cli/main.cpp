// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "palimpsest/cli/commands.hpp"

int main(int argc, char** argv) {
  using namespace palimpsest::cli;
  // A write beyond the limit on file sizes then fails like one on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  CommandLine line("palimpsest", "Reconstructs images from raw scans on a known number of bytes.",
                   "palimpsest " PALIMPSEST_VERSION);
  add_recon(line);
  add_plan(line);
  add_simulate(line);
  add_compare(line);
  add_info(line);
  add_doctor(line);
  return line.run(argc, argv);
}
