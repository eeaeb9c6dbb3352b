// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/file_mappings.hpp"
#include "palimpsest/memory/storage.hpp"

namespace palimpsest {
namespace {

class OpenFile {
 public:
  // O_NONBLOCK: a pipe without a writer would block for ever.
  explicit OpenFile(const char* path)
      : descriptor_(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

Storage Storage::from_file(const std::string& path, std::size_t offset, std::size_t bytes) {
  const auto fail = [&path](const std::string& what) {
    return IoError("[Storage.from_file] '" + path + "' " + what);
  };
  const OpenFile file(path.c_str());
  if (file.descriptor() < 0) {
    throw fail(std::string("cannot be opened: ") + std::strerror(errno));
  }
  struct stat info = {};
  if (fstat(file.descriptor(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw fail("is not a regular file");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (offset > size || bytes > size - offset) {
    throw fail("is too short: got " + std::to_string(size) + " bytes, expected " +
               std::to_string(offset) + " + " + std::to_string(bytes));
  }
  if (bytes == 0) return allocate(0);
  // Mappings start at page boundaries.
  const std::size_t lead = offset % static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t length = lead + bytes;
  const MappedPlace first{info.st_dev, info.st_ino, static_cast<std::int64_t>(offset - lead)};
  const auto mapping = std::make_shared<FileMapping>(file.descriptor(), length, first, true);
  if (mapping->data() == nullptr) {
    throw fail(std::string("cannot be mapped: ") + std::strerror(errno));
  }
  return from_foreign(mapping->data() + lead, bytes, Device{}, false, [mapping] {});
}

}  // namespace palimpsest
