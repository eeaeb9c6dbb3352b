// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/content_hash.hpp"

#include <fmt/format.h>

#include "palimpsest/tensor/tensor.hpp"

// Without the shared object: one less that every program maps.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace palimpsest {

std::uint64_t content_hash(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

struct ContentHasher::State {
  XXH3_state_t xxh;
};

ContentHasher::ContentHasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}

ContentHasher::~ContentHasher() = default;

void ContentHasher::add(const void* data, std::size_t bytes) {
  XXH3_128bits_update(&state_->xxh, data, bytes);
}

void ContentHasher::add(const Tensor& t) {
  if (t.numel() == 0) return;
  if (t.is_contiguous()) {
    add(t.raw_data(), static_cast<std::size_t>(t.nbytes()));
    return;
  }
  for (index_t i = 0; i < t.shape()[0]; ++i) add(t.select(0, i));
}

std::string ContentHasher::digits() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace palimpsest
