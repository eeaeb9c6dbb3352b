// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/failure.hpp"

namespace palimpsest {

namespace {

constexpr std::size_t kBufferBytes = 1 << 16;
constexpr std::string_view kTried = "cannot be written";

/// Directory with its final slash, and the name in it.
std::pair<std::string, std::string> split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

/// The target of one symbolic link; empty if the path is not a link.
std::string link_text(const std::string& path) {
  std::string text(4096, '\0');
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return text;
}

/// Opens a new file beside the target. Tries another name if the name is taken.
int open_beside(const std::string& target, std::string& temporary) {
  static std::atomic<unsigned> counter{0};
  const auto [directory, name] = split_path(target);
  for (int attempt = 0; attempt < 100; ++attempt) {
    // The name is cut, so that a target of the longest legal name has room for the rest.
    temporary = fmt::format("{}.{}.{}-{}.tmp", directory, name.substr(0, 200), ::getpid(),
                            counter.fetch_add(1, std::memory_order_relaxed));
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

/// Makes the new name itself durable. Some file systems cannot; the content is safe by then.
void sync_directory_of(const std::string& target) {
  const std::string directory = split_path(target).first;
  const int descriptor =
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

std::string link_target(const std::string& path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::string target = path;
  for (int n = 0; n < kMostLinks; ++n) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(target.c_str(), nullptr),
                                                           &std::free);
    if (real) return real.get();
    // The last part may be a link to a file that does not exist yet.
    const std::string text = link_text(target);
    if (text.empty()) return target;
    target = text.front() == '/' ? text : split_path(target).first + text;
  }
  io_detail::fail_io(path, kTried, ELOOP);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(link_target(path_)) {
  struct stat status = {};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) io_detail::fail_io(path_, kTried, EISDIR);
  if (split_path(target_).second.empty()) {
    io_detail::fail_io(path_, kTried, path_.empty() ? ENOENT : EISDIR);
  }
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    // rename() would replace a file that its owner has made read-only.
    if (exists && ::access(target_.c_str(), W_OK) != 0) io_detail::fail_io(path_, kTried, errno);
    descriptor_ = open_beside(target_, temporary_);
  }
  if (descriptor_ < 0) {
    temporary_.clear();
    io_detail::fail_io(path_, kTried, errno);
  }
  if (exists && !temporary_.empty()) {
    // A mode that cannot be set does not prevent writing the data.
    [[maybe_unused]] const int ignored = ::fchmod(descriptor_, status.st_mode & 0777);
  }
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::write(const void* data, std::size_t n_bytes) {
  if (descriptor_ < 0) throw InternalError(fmt::format("[{}] is written after its end", path_));
  const auto* bytes = static_cast<const char*>(data);
  if (buffer_.size() + n_bytes <= kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes, bytes + n_bytes);
    return;
  }
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
  if (n_bytes <= kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes, bytes + n_bytes);
  } else {
    write_through(data, n_bytes);
  }
}

void AtomicFile::write_through(const void* data, std::size_t n_bytes) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  const auto* bytes = static_cast<const char*>(data);
  while (n_bytes > 0) {
    const ssize_t written = ::write(descriptor_, bytes, std::min(n_bytes, kMostAtOnce));
    if (written < 0) {
      if (errno == EINTR) continue;
      const int reason = errno;
      discard();
      io_detail::fail_io(path_, kTried, reason);
    }
    bytes += written;
    n_bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::flush() {
  if (descriptor_ < 0) throw InternalError(fmt::format("[{}] is flushed after its end", path_));
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
  // EINVAL: a pipe or device, which has no disk behind it.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) {
    const int reason = errno;
    discard();
    io_detail::fail_io(path_, kTried, reason);
  }
}

void AtomicFile::commit() {
  flush();
  // Network file systems report a full disk as late as here.
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int reason = errno;
    discard();
    io_detail::fail_io(path_, kTried, reason);
  }
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int reason = errno;
    discard();
    io_detail::fail_io(path_, kTried, reason);
  }
  temporary_.clear();
  sync_directory_of(target_);
}

}  // namespace palimpsest
