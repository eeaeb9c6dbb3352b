// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/commands.hpp"

namespace palimpsest::cli {

void add_commands(CommandLine& line) {
  add_recon(line);
  add_plan(line);
  add_simulate(line);
  add_maps(line);
  add_whiten(line);
  add_compress(line);
  add_pattern(line);
  add_traj(line);
  add_fft(line);
  add_nufft(line);
  add_phantom(line);
  add_convert(line);
  add_compare(line);
  add_show(line);
  add_info(line);
  add_bench(line);
  add_doctor(line);
  add_completion(line);
  add_help(line);
}

}  // namespace palimpsest::cli
