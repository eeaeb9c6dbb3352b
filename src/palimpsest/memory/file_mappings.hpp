// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

// Memory mapped by Storage::from_file, shared_memory and attach_shared_memory, and the bytes of the
// file or segment that it shows.
namespace palimpsest {

/// A byte of a file or of a shared-memory segment. One byte may be mapped at several addresses.
struct MappedPlace {
  std::uint64_t device = 0, inode = 0;
  std::int64_t offset = 0;

  bool is_in_same_file(const MappedPlace& other) const {
    return device == other.device && inode == other.inode;
  }
};
/// The place of the first of these bytes, if all of them lie in one mapping.
/// Cost     one load where nothing is mapped
std::optional<MappedPlace> mapped_place(const void* data, std::size_t bytes);

/// Pages of an open file or segment in the address space, from a page boundary on: those of a file
/// are read only, those of a segment are written and shared. mapped_place() finds them until they
/// end.
class FileMapping {
 public:
  /// data() is null if the system refuses, and errno says why. Without bytes nothing is mapped.
  FileMapping(int descriptor, std::size_t bytes, const MappedPlace& first, bool is_file);
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;
  ~FileMapping();

  std::byte* data() const { return data_; }

 private:
  FileMapping(void* mapped, std::size_t bytes);

  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace palimpsest
