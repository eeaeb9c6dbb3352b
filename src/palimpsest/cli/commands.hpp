// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/cli/command_line.hpp"

namespace palimpsest::cli {

/// Adds all of them, in the order in which help lists them.
void add_commands(CommandLine& line);

// A function per subcommand, each in the file of its name.
void add_bench(CommandLine& line);
void add_compare(CommandLine& line);
void add_completion(CommandLine& line);
void add_compress(CommandLine& line);
void add_convert(CommandLine& line);
void add_doctor(CommandLine& line);
void add_fft(CommandLine& line);
void add_help(CommandLine& line);
void add_info(CommandLine& line);
void add_maps(CommandLine& line);
void add_nufft(CommandLine& line);
void add_pattern(CommandLine& line);
void add_phantom(CommandLine& line);
void add_plan(CommandLine& line);
void add_recon(CommandLine& line);
void add_show(CommandLine& line);
void add_simulate(CommandLine& line);
void add_traj(CommandLine& line);
void add_whiten(CommandLine& line);

}  // namespace palimpsest::cli
