// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace palimpsest {

class Tensor;

/// XXH3-64 of the bytes, the checksum of archives.
std::uint64_t content_hash(const void* data, std::size_t bytes);

/// XXH3-128 of bytes that come in pieces.
class ContentHasher {
 public:
  ContentHasher();
  ~ContentHasher();
  ContentHasher(const ContentHasher&) = delete;
  ContentHasher& operator=(const ContentHasher&) = delete;
  void add(const void* data, std::size_t bytes);
  /// The elements in row-major order, for any strides; allocates no memory for them.
  void add(const Tensor& t);
  /// 32 hexadecimal digits.
  std::string digits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
