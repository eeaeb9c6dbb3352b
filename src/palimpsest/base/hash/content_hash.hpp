// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace palimpsest {

/// XXH3-64 of the bytes, the checksum of archives and of kept kernels.
std::uint64_t content_hash(const void* data, std::size_t bytes);

/// XXH3-128 of bytes that come in pieces.
class ByteHasher {
 public:
  ByteHasher();
  ~ByteHasher();
  ByteHasher(const ByteHasher&) = delete;
  ByteHasher& operator=(const ByteHasher&) = delete;
  void add(const void* data, std::size_t bytes);
  /// 32 hexadecimal digits.
  std::string digits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
