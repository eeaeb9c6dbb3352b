// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <type_traits>

namespace palimpsest::testing {

/// Runs work in a child process and returns its exit status: the return value of work (true: 0,
/// false: 1), 99 if it throws, or 128 + the signal that ended the child. The signal is SIGALRM
/// after 30 seconds.
template <class Work>
int in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    int result = 99;
    try {
      if constexpr (std::is_same_v<decltype(work()), bool>) {
        result = work() ? 0 : 1;
      } else {
        result = work();
      }
    } catch (const std::exception&) {
    }
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace palimpsest::testing
