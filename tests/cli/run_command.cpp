// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace palimpsest::cli {
namespace {

namespace fs = std::filesystem;

// In the child: redirections and limits, then the program. Only async-signal-safe calls.
[[noreturn]] void become_command(char* const* arguments, const std::string& out,
                                 const std::string& err, const RunOptions& options) {
  const int in_fd = open("/dev/null", O_RDONLY);
  const bool elsewhere = !options.standard_output.empty() && options.standard_output != "closed";
  const int out_fd = elsewhere ? open(options.standard_output.c_str(), O_WRONLY | O_APPEND)
                               : open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_fd = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(in_fd, STDIN_FILENO);
  dup2(out_fd, STDOUT_FILENO);
  close(out_fd);
  dup2(err_fd, STDERR_FILENO);
  close(err_fd);
  close(in_fd);
  if (options.standard_output == "closed") close(STDOUT_FILENO);
  if (options.most_open_files > 0) {
    const auto files = static_cast<rlim_t>(options.most_open_files);
    const rlimit limit{files, files};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (options.largest_file_bytes > 0) {
    const auto bytes = static_cast<rlim_t>(options.largest_file_bytes);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (options.obeys_permissions) prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0);
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

index_t CommandResult::error_lines() const { return std::count(err.begin(), err.end(), '\n'); }

CommandResult run_command(const std::vector<std::string>& arguments, const RunOptions& options) {
  const ScratchDirectory scratch;
  const std::string out = scratch / "out", err = scratch / "err";
  const std::string peak = scratch / "peak";
  std::vector<std::string> words = {PALIMPSEST_COMMAND};
  if (options.measures_memory) words = {PEAK_OF_PROCESS, peak, PALIMPSEST_COMMAND};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  setenv("ASAN_OPTIONS", "exitcode=99", 1);
  setenv("UBSAN_OPTIONS", "exitcode=99", 1);
  setenv("TSAN_OPTIONS", "exitcode=99", 0);

  const char* const folder = getenv("TMPDIR");
  const std::string own_folder = folder == nullptr ? "/tmp" : folder;
  if (!options.temporary_folder.empty()) setenv("TMPDIR", options.temporary_folder.c_str(), 1);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become_command(pointers.data(), out, err, options);
  if (!options.temporary_folder.empty()) setenv("TMPDIR", own_folder.c_str(), 1);
  if (options.meanwhile) options.meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  CommandResult result;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.out = read_file(out);
  result.err = read_file(err);
  if (options.measures_memory) result.resident_bytes = std::stoll(read_file(peak));
  return result;
}

ScratchDirectory::ScratchDirectory() {
  std::string pattern = (fs::temp_directory_path() / "palimpsest-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::permissions(path_, fs::perms::owner_all, ignored);
  fs::remove_all(path_, ignored);
}

std::vector<std::string> ScratchDirectory::names() const {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(path_)) found.push_back(entry.path().filename());
  std::sort(found.begin(), found.end());
  return found;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace palimpsest::cli
