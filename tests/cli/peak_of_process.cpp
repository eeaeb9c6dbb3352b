// SPDX-License-Identifier: Apache-2.0
// peak_of_process FILE COMMAND ARGUMENTS..: runs a command and writes its peak resident set in
// bytes to FILE. A separate small program, since the system's maximum includes the starting
// process.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 3) return 126;
  const pid_t child = fork();
  if (child == 0) {
    execv(argv[2], argv + 2);
    _exit(127);
  }
  int status = 0;
  rusage usage = {};
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return 126;
  std::FILE* file = std::fopen(argv[1], "w");
  if (file == nullptr) return 126;
  std::fprintf(file, "%lld\n", static_cast<long long>(usage.ru_maxrss) * 1024);
  std::fclose(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
