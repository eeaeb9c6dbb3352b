// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::io_detail {

/// An open file that is read from wherever the caller says; closed at the end of its life.
class InputFile {
 public:
  /// IoError if there is no such file, if it may not be read, or if it is not a regular file.
  /// Readers check sizes in the content against the size of the file.
  explicit InputFile(std::string path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  index_t size() const { return size_; }
  int descriptor() const { return descriptor_; }

  /// Exactly `n_bytes` from `offset` on. IoError when the disk fails or the file has shrunk.
  void read_at(index_t offset, void* out, index_t n_bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  index_t size_ = 0;
};

/// The whole of a small file. FormatError, before anything is read, when it is above the limit.
std::string read_text(const std::string& path, index_t limit_bytes);

}  // namespace palimpsest::io_detail
