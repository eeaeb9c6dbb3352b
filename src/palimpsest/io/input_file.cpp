// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "palimpsest/io/prelude.hpp"

namespace palimpsest::io_detail {

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer before anybody can refuse it.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_io(path_, "cannot be read", errno);
  struct stat status = {};
  int problem = 0;
  if (::fstat(descriptor_, &status) != 0) {
    problem = errno;
  } else if (S_ISDIR(status.st_mode)) {
    problem = EISDIR;
  } else if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw IoError(
        fmt::format("[{}] cannot be read: got a pipe or device, expected a regular file. Try to "
                    "copy its content into a file first.",
                    path_));
  }
  if (problem != 0) {
    ::close(descriptor_);
    fail_io(path_, "cannot be read", problem);
  }
  size_ = status.st_size;
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read_at(index_t offset, void* out, index_t n_bytes) const {
  constexpr index_t kMostAtOnce = index_t{1} << 30;
  auto* to = static_cast<char*>(out);
  while (n_bytes > 0) {
    const auto step = static_cast<std::size_t>(std::min(n_bytes, kMostAtOnce));
    const ssize_t got = ::pread(descriptor_, to, step, offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      fail_io(path_, fmt::format("cannot be read at byte {}", offset), errno);
    }
    if (got == 0) {
      throw IoError(
          fmt::format("[{}] ended at byte {} while it was read, expected {} bytes more. Try again "
                      "when no program "
                      "writes to it.",
                      path_, offset, n_bytes));
    }
    to += got;
    offset += got;
    n_bytes -= got;
  }
}

std::string read_text(const std::string& path, index_t limit_bytes) {
  const InputFile file(path);
  if (file.size() > limit_bytes) {
    fail_format(path, fmt::format("is too long for a header: got {} bytes, expected at most {}.",
                                  file.size(), limit_bytes));
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, text.data(), file.size());
  return text;
}

}  // namespace palimpsest::io_detail
