// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/standard_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "palimpsest/base/error.hpp"

namespace palimpsest::cli {
namespace {

void check(bool is_good) {
  if (is_good) return;
  const std::string reason = std::generic_category().message(errno);
  throw IoError("[standard output] cannot be written: " + reason + ". Try another place for it");
}

}  // namespace

void open_standard_files() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(standard, F_GETFD) >= 0 || errno != EBADF) continue;
    // For reading only, so that printing fails with an error. open() returns the lowest free
    // number: this one.
    [[maybe_unused]] const int opened = ::open("/dev/null", O_RDONLY);
  }
}

void print(std::string_view text) {
  check(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void print_to_reader(std::string_view text) {
  flush_standard_output();
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EPIPE) return;
    if (written < 0 && errno == EINTR) continue;
    check(written >= 0);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void flush_standard_output() { check(std::fflush(stdout) == 0 && std::ferror(stdout) == 0); }

}  // namespace palimpsest::cli
