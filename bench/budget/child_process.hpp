// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace palimpsest::bench {

struct ChildResult {
  bool has_run = false;  ///< false: there is no such program
  int exit_code = 0;
  double seconds = 0;           ///< from start to end
  double cpu_seconds = 0;       ///< of all its threads
  std::int64_t peak_bytes = 0;  ///< largest resident set
  std::string output, errors;
};

/// Runs a program to its end, with its output kept. The first word is looked up in PATH.
///
/// The system counts to a process what its parent had in memory when it was started. So it is
/// started by a small one: by this program again, as `PROGRAM --launch FILE COMMAND...`.
ChildResult run_child(const std::vector<std::string>& command);

/// What main() does for `--launch`: runs the command and writes its exit code, the bytes of its
/// peak and the seconds of its processors into the file.
int launch(int argc, char** argv);

}  // namespace palimpsest::bench
