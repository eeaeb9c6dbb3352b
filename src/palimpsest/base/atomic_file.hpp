// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// The path with all symbolic links followed, also if no file is there yet.
///
/// Errors   IoError: links lead in a circle
std::string link_target(const std::string& path);

/// A file that appears whole or not at all: written beside its target and renamed on commit().
///
/// Until commit() returns, an old file at the target stays unchanged. An object that dies
/// uncommitted leaves no file. A symbolic link is followed, and a replaced file hands its mode on.
/// Devices and pipes, which cannot be replaced, are written directly.
///
/// Errors   IoError with path, reason and remedy: missing or read-only directory, full disk
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the written bytes, unless they were committed.
  ~AtomicFile();

  const std::string& path() const { return path_; }
  void write(const void* data, std::size_t n_bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Brings everything to the disk, so that commit() has nothing left that could fail for space.
  void flush();
  /// flush(), then the file gets its name. Call it once, last.
  void commit();

 private:
  void write_through(const void* data, std::size_t n_bytes);
  void discard() noexcept;

  std::string path_;       // as the caller wrote it
  std::string target_;     // where links lead
  std::string temporary_;  // empty when the target is written directly
  std::vector<char> buffer_;
  int descriptor_ = -1;
};

}  // namespace palimpsest
