// SPDX-License-Identifier: Apache-2.0
#include "child_process.hpp"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

extern char** environ;

namespace palimpsest::bench {
namespace {

std::string text_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char piece[4096];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, n);
  std::fclose(file);
  return text;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command) {
  ChildResult result;
  std::FILE *output = std::tmpfile(), *errors = std::tmpfile();
  char facts[] = "/tmp/palimpsest-bench-XXXXXX";
  const int file = mkstemp(facts);
  if (!output || !errors || file < 0) return result;
  close(file);
  std::vector<std::string> words{"/proc/self/exe", "--launch", facts};
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(output), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(errors), STDERR_FILENO);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  pid_t child = 0;
  const int failure =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failure == 0 && waitpid(child, &status, 0) == child) {
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    std::ifstream text(facts);
    result.has_run =
        static_cast<bool>(text >> result.exit_code >> result.peak_bytes >> result.cpu_seconds);
  }
  unlink(facts);
  result.output = text_of(output);
  result.errors = text_of(errors);
  return result;
}

int launch(int argc, char** argv) {
  if (argc < 4) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    execvp(argv[3], argv + 3);
    _exit(127);
  }
  int status = 0;
  struct rusage usage = {};
  if (wait4(child, &status, 0, &usage) != child) return 1;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 127) return 1;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  std::ofstream(argv[2]) << code << ' ' << usage.ru_maxrss * 1024 << ' '
                         << seconds(usage.ru_utime) + seconds(usage.ru_stime) << '\n';
  return 0;
}

}  // namespace palimpsest::bench
