// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/hash/content_hash.hpp"

#include <fmt/format.h>

// Without the shared object: one less that every program maps.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace palimpsest {

std::uint64_t content_hash(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

struct ByteHasher::State {
  XXH3_state_t xxh;
};

ByteHasher::ByteHasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }

ByteHasher::~ByteHasher() = default;

void ByteHasher::add(const void* data, std::size_t bytes) {
  XXH3_128bits_update(&state_->xxh, data, bytes);
}

std::string ByteHasher::digits() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace palimpsest
