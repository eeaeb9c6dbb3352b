// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/base/hash/content_hash.hpp"

namespace palimpsest {

class Tensor;

/// XXH3-128 of bytes and elements that come in pieces.
class ContentHasher : public ByteHasher {
 public:
  using ByteHasher::add;
  /// The elements in row-major order, for any strides; allocates no memory for them.
  void add(const Tensor& t);
};

}  // namespace palimpsest
