// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/cli/command_line.hpp"

namespace palimpsest::cli {

// One function per subcommand, each in the file of its name.
void add_compare(CommandLine& line);
void add_doctor(CommandLine& line);
void add_info(CommandLine& line);
void add_plan(CommandLine& line);
void add_recon(CommandLine& line);
void add_simulate(CommandLine& line);

}  // namespace palimpsest::cli
