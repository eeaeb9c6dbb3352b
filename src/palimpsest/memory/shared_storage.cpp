// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/system/system_calls.hpp"
#include "palimpsest/memory/file_mappings.hpp"
#include "palimpsest/memory/storage.hpp"

namespace palimpsest {
namespace {

IoError failure(const char* who, const std::string& what) {
  return IoError("[Storage." + std::string(who) + "] " + what);
}

std::string system_error() { return std::strerror(errno); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

struct SharedHeader : BlockHeader {
  SharedHeader(Descriptor descriptor_, std::size_t bytes_, const MappedPlace& first)
      : BlockHeader(nullptr, bytes_, Device{}, BlockKind::foreign_writable),
        descriptor(std::move(descriptor_)),
        mapping(descriptor.number(), bytes_, first, false) {
    data = mapping.data();
    free = free_shared;
  }
  static void free_shared(BlockHeader* me) noexcept {
    const std::unique_ptr<SharedHeader> header(static_cast<SharedHeader*>(me));
  }

  const Descriptor descriptor;
  const FileMapping mapping;
};

Block map_shared(Descriptor descriptor, std::size_t bytes, const char* who) {
  struct stat info = {};
  if (fstat(descriptor.number(), &info) != 0) throw failure(who, "has no state: " + system_error());
  auto header = std::make_unique<SharedHeader>(std::move(descriptor), bytes,
                                               MappedPlace{info.st_dev, info.st_ino, 0});
  if (bytes > 0 && header->data == nullptr)
    throw failure(who, "cannot be mapped: " + system_error());
  return Block(header.release());
}

}  // namespace

Storage Storage::shared_memory(std::size_t bytes) {
  Descriptor descriptor(system_detail::make_memory_file("palimpsest"));
  if (descriptor.number() < 0) throw failure("shared_memory", "cannot be made: " + system_error());
  const auto length = static_cast<off_t>(bytes);
  if (length < 0 || ftruncate(descriptor.number(), length) != 0) {
    throw failure("shared_memory", "cannot get " + std::to_string(bytes) + " bytes");
  }
  // Prevents other holders from removing pages.
  if (!system_detail::seal_size(descriptor.number())) {
    throw failure("shared_memory", "cannot be sealed: " + system_error());
  }
  return over(map_shared(std::move(descriptor), bytes, "shared_memory"));
}

Storage Storage::attach_shared_memory(int descriptor) {
  Descriptor mine(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  struct stat info = {};
  if (mine.number() < 0 || fstat(mine.number(), &info) != 0 ||
      !system_detail::has_sealed_size(mine.number())) {
    throw failure("attach_shared_memory",
                  "not a descriptor of shared memory: got " + std::to_string(descriptor));
  }
  return over(
      map_shared(std::move(mine), static_cast<std::size_t>(info.st_size), "attach_shared_memory"));
}

int Storage::shared_descriptor() const {
  const BlockHeader* const header = impl().block.header();
  if (header->free != SharedHeader::free_shared) {
    throw ValueError("[Storage.shared_descriptor] not shared memory: got a storage that is " +
                     std::string(name_of(state())) + ". Try Storage::shared_memory().");
  }
  return static_cast<const SharedHeader*>(header)->descriptor.number();
}

}  // namespace palimpsest
