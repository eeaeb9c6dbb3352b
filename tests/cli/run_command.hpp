// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::cli {

struct CommandResult {
  /// Exit code; -1 when a signal ended the process.
  int code = 0;
  std::string out, err;
  /// Peak resident set in bytes, if it was to be measured.
  index_t resident_bytes = 0;

  index_t error_lines() const;
};

struct RunOptions {
  /// Largest file that the command may write; 0: no limit.
  index_t largest_file_bytes = 0;
  /// The command obeys permissions of directories, even as root.
  bool obeys_permissions = false;
  /// Destination of standard output in place of the result; `closed`: it is closed.
  std::string standard_output = {};
  bool measures_memory = false;
  /// Most files that may be open at once; 0: no limit.
  index_t most_open_files = 0;
  /// TMPDIR of the command; empty: that of the test.
  std::string temporary_folder = {};
  /// Called while the command runs, with its process number.
  std::function<void(int process)> meanwhile = {};
};

/// Runs the program `palimpsest` of this build, standard input empty. Sanitizer reports end it with
/// code 99.
CommandResult run_command(const std::vector<std::string>& arguments,
                          const RunOptions& options = {});

/// A new directory, removed at the end with everything in it.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  /// Sorted names of the entries.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

}  // namespace palimpsest::cli
