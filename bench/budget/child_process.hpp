// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace palimpsest::bench {

struct ChildResult {
  bool has_run = false;  ///< false: the program does not exist
  int exit_code = 0;
  double seconds = 0;           ///< from start to end
  double cpu_seconds = 0;       ///< of all threads
  std::int64_t peak_bytes = 0;  ///< largest resident set
  std::string output, errors;
};

/// Runs a program to its end and returns its output. The first word is looked up in PATH.
///
/// The system counts the memory of the parent at the start as memory of the child. So a small
/// process starts it: this program again, as `PROGRAM --launch FILE COMMAND...`.
ChildResult run_child(const std::vector<std::string>& command);

/// The action of main() for `--launch`: runs the command and writes its exit code, its peak in
/// bytes and its processor seconds to the file.
int launch(int argc, char** argv);

}  // namespace palimpsest::bench
